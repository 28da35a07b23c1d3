#!/usr/bin/env python3
"""`cera template` against prompts rendered by Python's jinja2 as Hugging Face sets it up (data/goldens/chat-templates.jsonl): byte for
byte, and an error with its line where jinja2 fails. Then hostile templates, what is told apart as the user's text, built-in templates,
and the time of a 10 kB chat.

    chat_template_test.py --cera build/cera --shared ../shared [--max-ms 1.0]
"""
import argparse
import concurrent.futures
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gguf_write as gguf

NOW = '2026-07-26T13:05:09'
failures = 0


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print('FAIL ' + what)
    return ok


class Runner:
    def __init__(self, cera, folder):
        self.cera, self.folder, self.n = cera, folder, 0

    def file(self, content):
        self.n += 1
        path = os.path.join(self.folder, f'{self.n}')
        with open(path, 'wb') as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def run(self, args, stdin=b'', timeout=20):
        return subprocess.run([self.cera, 'template', *args], input=stdin, capture_output=True, timeout=timeout)

    def render(self, template, context, *more):
        return self.run(['--file', template, '--context', self.file(json.dumps(context)), '--now', NOW, *more])


def goldens(runner, shared):
    path = os.path.join(shared, 'data', 'goldens', 'chat-templates.jsonl')
    rows = [json.loads(line) for line in open(path, encoding='utf-8')]

    def one(row):
        return row, runner.render(os.path.join(shared, 'data', 'chat-templates', row['template']), row['context'])
    right = errors = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for row, got in pool.map(one, rows):
            name = f"{row['template']} {row['case']}"
            if 'error' in row:
                errors += 1
                cause = row['error'].split(': ', 1)[1][:60]
                text = got.stderr.decode()
                right += check(got.returncode == 1 and 'template line ' in text and cause in text, f"{name}: jinja2 fails with {row['error']!r}, cera: {got.returncode} {text!r}")
            else:
                right += check(got.returncode == 0 and got.stdout == row['expected'].encode(), f'{name}: other text; {got.stderr.decode()!r}')
    print(f'chat templates: {right} of {len(rows)} right ({errors} are errors)')


HOSTILE = [  # template, what the message says
    ('{% for i in range(1000000000) %}x{% endfor %}', 'Range too big'),
    ('{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}', 'limit'),
    ('{% macro x() %}{{ x() }}{% endmacro %}{{ x() }}', 'recursion'),
    ('{{ ' + '(' * 20000 + '1' + ')' * 20000 + ' }}', 'nested too deep'),
    ('{{ ' + '[' * 20000 + ']' * 20000 + ' }}', 'nested too deep'),
    ('{{ ' + '-' * 20000 + '1 }}', 'nested too deep'),
    ('{{ ' + 'not ' * 20000 + '1 }}', 'nested too deep'),
    ('{{ 1' + ' if 1 else 1' * 20000 + ' }}', 'nested too deep'),
    ('{{ 1' + ' + 1' * 20000 + ' }}', 'nested too deep'),
    ('{% if 1 %}' * 20000, 'nested too deep'),
    ("{{ ''.__class__.__mro__[1].__subclasses__() }}", 'is unsafe'),
    ('{{ messages.append(1) }}', 'is unsafe'),
    ('{{ cycler.__init__.__globals__.os }}', 'is unsafe'),
    ("{{ raise_exception('two users running') }}", 'two users running'),
    ("{{ 'x' * 1000000000 }}", 'limit'),
    ("{{ '%1000000000d' % 1 }}", 'limit'),
    ("{{ 'x'.center(10000000000) }}", 'limit'),
    ("{{ ''|indent(1000000000) }}", 'limit'),
    ('{{ [1] * 100000000 }}', 'limit'),
    ("{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", 'limit'),
    ('{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}', 'recursion'),
    ('{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}', 'recursion'),
    ('{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(100) }}', 'limit'),
    ('{% include "/etc/passwd" %}', 'not supported'),
    ('{{ missing.attribute }}', "'missing' is undefined"),
    ('{{ 10 ** 100 }}', '64 bits'),
    ('{% if %}', 'line 1'),
    ('\n\n{{ nope', 'line 3'),
]


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hostile(runner):
    for template, words in HOSTILE:
        start = children_cpu()  # processor time: a busy machine does not make a template slower
        got = runner.render(runner.file(template), {'messages': []})
        took = children_cpu() - start
        name = template[:60]
        check(got.returncode == 1 and words in got.stderr.decode() and 'line ' in got.stderr.decode(), f'{name!r}: exit {got.returncode}, {got.stderr.decode()!r}, should say {words!r}')
        check(took < 1, f'{name!r}: took {took:.2f} s')
        check(got.stderr.count(b'\n') == 1, f'{name!r}: the message is more than one line')
    print(f'hostile templates: {len(HOSTILE)}')


SEGMENTS = [  # template, context, segments as (user, text)
    ("<|a|>{{ messages[0].content }}<|b|>", [(False, '<|a|>'), (True, 'U<|a|>'), (False, '<|b|>')]),
    ("{{ '<|' ~ messages[0].role ~ '|>' ~ messages[0].content[1:] ~ '!' }}", [(False, '<|user|>'), (True, '<|a|>'), (False, '!')]),
    ("{{ messages[1].role }}|{{ bos_token }}", [(True, '<|x|>'), (False, '|<s>')]),
    ("{{ (messages[0].content ~ '<|b|>') | replace('|', '_') | upper }}", [(True, 'U<'), (False, '_'), (True, 'A'), (False, '_'), (True, '>'), (False, '<_B_>')]),
    ("{{ messages[0].content.split('<')[0] + messages | map(attribute='content') | join('<|b|>') }}", None),
    ("{{ '%s<|b|>%s' % (messages[0].content, 'x') }}", [(True, 'U<|a|>'), (False, '<|b|>x')]),
    ("{% set x %}<|b|>{{ messages[0].content }}{% endset %}{{ x }}", [(False, '<|b|>'), (True, 'U<|a|>')]),
    ("{% macro m(t) %}[{{ t | trim }}]{% endmacro %}{{ m(messages[0].content) }}", [(False, '['), (True, 'U<|a|>'), (False, ']')]),
    ("{{ messages[0] | tojson }}", [(False, '{"'), (True, 'role'), (False, '": "user", "'), (True, 'content'), (False, '": "'), (True, 'U<|a|>'), (False, '"}')]),
]


def segments(runner):
    context = {'bos_token': '<s>', 'messages': [{'role': 'user', 'content': 'U<|a|>'}, {'role': '<|x|>', 'content': 'é\n'}]}
    for template, want in SEGMENTS:
        got = runner.render(runner.file(template), context, '--segments')
        plain = runner.render(runner.file(template), context)
        if want is None:
            check(got.returncode == plain.returncode, template)
            continue
        parts = [(s['user'], s['text']) for s in json.loads(got.stdout)]
        check(parts == want, f'segments of {template!r}: {parts}, want {want}')
        check(''.join(t for _, t in parts).encode() == plain.stdout, f'segments of {template!r} are not the text')
    print(f'segments: {len(SEGMENTS)}')


BUILTIN = {  # the formats, from their own documentation
    'chatml': '<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\nB<|im_end|>\n<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n',
    'llama2': '<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nA [/INST] B </s><s>[INST] C [/INST]',
    'llama3': '<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nB<|eot_id|>'
              '<|start_header_id|>user<|end_header_id|>\n\nC<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    'gemma': '<s><start_of_turn>user\nS\n\nA<end_of_turn>\n<start_of_turn>model\nB<end_of_turn>\n<start_of_turn>user\nC<end_of_turn>\n<start_of_turn>model\n',
    'phi3': '<|system|>\nS<|end|>\n<|user|>\nA<|end|>\n<|assistant|>\nB<|end|>\n<|user|>\nC<|end|>\n<|assistant|>\n',
    'zephyr': '<|system|>\nS</s>\n<|user|>\nA</s>\n<|assistant|>\nB</s>\n<|user|>\nC</s>\n<|assistant|>\n',
    'deepseek3': '<s>S<｜User｜>A<｜Assistant｜>B<｜end▁of▁sentence｜><｜User｜>C<｜Assistant｜>',
    'mistral-v7': '<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]A[/INST]B</s>[INST]C[/INST]',
    'command-r': '<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>A<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>B<|END_OF_TURN_TOKEN|>'
                 '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>C<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>',
}


def builtin(runner):
    context = {'bos_token': '<s>', 'eos_token': '</s>', 'add_generation_prompt': True, 'messages': [
        {'role': 'system', 'content': 'S'}, {'role': 'user', 'content': 'A'}, {'role': 'assistant', 'content': 'B'}, {'role': 'user', 'content': 'C'}]}
    names = runner.run(['--list']).stdout.decode().split()
    for name in names:
        got = runner.run(['--name', name, '--context', runner.file(json.dumps(context))])
        text = got.stdout.decode()
        check(got.returncode == 0, f'--name {name}: {got.stderr.decode()!r}')
        check(all(x in text for x in 'SABC'), f'--name {name}: a message is missing: {text!r}')
        if name in BUILTIN:
            check(text == BUILTIN[name], f'--name {name}: {text!r}')
    unknown = runner.run(['--name', 'nope', '--context', runner.file('{}')])
    check(unknown.returncode == 1 and b'chatml' in unknown.stderr, 'an unknown name: the message lists the known ones')
    print(f'built-in templates: {len(names)}')


def from_model(runner):
    """-m: the template, bos_token and eos_token are the file's; the context's own members win."""
    keys = [gguf.key('general.architecture', gguf.STR, 'llama'), gguf.key('tokenizer.ggml.tokens', gguf.ARR, (gguf.STR, ['<unk>', '<s>', '</s>'])),
            gguf.key('tokenizer.ggml.bos_token_id', gguf.U32, 1), gguf.key('tokenizer.ggml.eos_token_id', gguf.U32, 2)]
    template = gguf.key('tokenizer.chat_template', gguf.STR, '{{ bos_token }}{{ messages[0].content }}{{ eos_token }}')
    model, bare = runner.file(gguf.build(keys + [template], [])), runner.file(gguf.build(keys, []))
    hostile_model = runner.file(gguf.build(keys + [gguf.key('tokenizer.chat_template', gguf.STR, '{% for i in range(1000000000) %}x{% endfor %}')], []))
    for context, want in (('{"messages": [{"content": "x"}]}', b'<s>x</s>'), ('{"messages": [{"content": "x"}], "bos_token": "B"}', b'Bx</s>')):
        got = runner.run(['-m', model, '--context', runner.file(context)])
        check(got.stdout == want and got.returncode == 0, f'-m with {context}: {got.stdout!r} {got.stderr.decode()!r}')
    for context in ('{}', '[]', '{', ''):
        got = runner.run(['-m', model, '--context', runner.file(context)])
        check(got.returncode == 1 and got.stderr.count(b'\n') == 1, f'-m with {context!r}: {got.returncode} {got.stderr.decode()!r}')
    got = runner.run(['-m', bare, '--context', runner.file('{}')])
    check(got.returncode == 1 and b'no chat template' in got.stderr, f'a model without a template: {got.stderr.decode()!r}')
    got = runner.run(['-m', hostile_model, '--context', runner.file('{}')])
    check(got.returncode == 1 and b'Range too big' in got.stderr, f'a hostile template in a model: {got.stderr.decode()!r}')
    print('templates of model files: 8')


def speed(runner, shared, max_ms):
    words = 'The quick brown fox jumps over the lazy dog, "twice" <b>. '
    messages = [m for i in range(10) for m in ({'role': 'user', 'content': words * 9}, {'role': 'assistant', 'content': words * 9})] + [{'role': 'user', 'content': 'ok?'}]
    context = runner.file(json.dumps({'messages': messages, 'bos_token': '<s>', 'eos_token': '</s>', 'add_generation_prompt': True}))
    for template in ('LFM2-8B-A1B', 'Qwen-Qwen3-0.6B', 'meta-llama-Llama-3.1-8B-Instruct', 'openai-gpt-oss-120b'):
        path = os.path.join(shared, 'data', 'chat-templates', template + '.jinja')

        def seconds(n):
            start = children_cpu()
            got = runner.run(['--file', path, '--context', context, '--now', NOW, '--repeat', str(n)], timeout=60)
            check(got.returncode == 0, f'{template}: {got.stderr.decode()!r}')
            return children_cpu() - start, len(got.stdout)
        best = min((seconds(201)[0] - seconds(1)[0]) / 200 for _ in range(3)) * 1000
        size = seconds(1)[1]
        check(best < max_ms, f'{template}: {best:.3f} ms')
        print(f'time: {template}: a prompt of {size} bytes in {best:.3f} ms (context parsed each time)')


def main():
    args = argparse.ArgumentParser()
    args.add_argument('--cera', required=True)
    args.add_argument('--shared')
    args.add_argument('--max-ms', type=float, default=1.0)
    a = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(a.cera, folder)
        hostile(runner)
        segments(runner)
        builtin(runner)
        from_model(runner)
        if a.shared and os.path.isdir(os.path.join(a.shared, 'data', 'chat-templates')):
            goldens(runner, a.shared)
            speed(runner, a.shared, a.max_ms)
        else:
            print('SKIP: no shared data')
            return 1 if failures else 77
    return 1 if failures else 0


sys.exit(main())
