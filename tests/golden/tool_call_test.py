#!/usr/bin/env python3
"""`cera template --parse` against outputs with known calls (data/goldens/tool-calls.jsonl): the same calls, content and reasoning, also
when the output comes a byte at a time. Then malformed outputs (no text may be lost) and other ways models write calls.

    tool_call_test.py --cera build/cera --shared ../shared
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

failures = 0


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print('FAIL ' + what)
    return ok


def tool(name, **properties):
    return {'type': 'function', 'function': {'name': name, 'parameters': {'type': 'object', 'properties': properties}}}


TOOLS = [tool('search', q={'type': 'string'}, n={'type': 'integer'}, any={}, maybe={'type': ['string', 'null']}, one={'enum': ['1', '2']},
              either={'anyOf': [{'type': 'integer'}, {'type': 'string'}]}, list={'type': 'array'}, flag={'type': 'boolean'}), tool('now'),
         {'type': 'function', 'function': {'name': 'odd', 'parameters': {'type': 'object', 'properties': {}}}}]

HERMES = '{# <tool_call> <think> #}'
CODER = '{# <tool_call> <function= #}'
GLM = '{# <tool_call> <arg_key> #}'
LLAMA = '{# <|python_tag|> #}'
LFM = '{# <|tool_list_start|> #}'
MISTRAL = '{# [TOOL_CALLS] [ARGS] #}'
GEMMA = '{# <|tool_call> call: #}'
HARMONY = '{# <|channel|> <|message|> #}<|start|>assistant'
THINKS = HERMES + '<think>\n'

# template, output, calls, content, reasoning, complete
CASES = [
    ('plain text', HERMES, 'No call at all.\n', [], 'No call at all.\n', '', True),
    ('json', HERMES, '<tool_call>\n{"name": "search", "arguments": {"q": "x"}}\n</tool_call>', [('search', {'q': 'x'})], '', '', True),
    ('arguments first', HERMES, '<tool_call>{"arguments": {"q": "x"}, "name": "search"}</tool_call>', [('search', {'q': 'x'})], '', '', True),
    ('arguments as text', HERMES, '<tool_call>{"name": "search", "arguments": "{\\"q\\": \\"x\\"}"}</tool_call>', [('search', {'q': 'x'})], '', '', True),
    ('no arguments', HERMES, '<tool_call>{"name": "now"}</tool_call>', [('now', {})], '', '', True),
    ('odd schema', HERMES, '<tool_call>{"name": "odd", "arguments": {}}</tool_call><tool_call>{"name": "search", "arguments": {"q": "y"}}</tool_call>', [('odd', {}), ('search', {'q': 'y'})], '', '', True),
    ('nested function', HERMES, '<tool_call>{"type": "function", "function": {"name": "search", "arguments": {"q": "x"}}}</tool_call>', [('search', {'q': 'x'})], '', '', True),
    ('end tag in a string', HERMES, '<tool_call>{"name": "search", "arguments": {"q": "</tool_call> {[\\" \\\\"}}</tool_call>', [('search', {'q': '</tool_call> {[" \\'})], '', '', True),
    ('missing end tag', HERMES, 'a <tool_call>{"name": "search", "arguments": {"q": "x"}}', [('search', {'q': 'x'})], 'a', '', True),
    ('text after', HERMES, '<tool_call>{"name": "now", "arguments": {}}</tool_call>\nDone.', [('now', {})], 'Done.', '', True),
    ('thought', HERMES, '<think>\nhm\n</think>\n\nyes', [], 'yes', 'hm', True),
    ('thought from the prompt', THINKS, 'hm\n</think>\n\nyes', [], 'yes', 'hm', True),
    ('thought that does not end', THINKS, 'hm hm', [], '', 'hm hm', True),
    ('tag in a thought', THINKS, 'maybe <tool_call>{}</tool_call>?</think>no', [], 'no', 'maybe <tool_call>{}</tool_call>?', True),
    ('half a tag', HERMES, 'a <tool_cal', [], 'a <tool_cal', '', True),
    ('bad json', HERMES, 'a <tool_call>{"name": "search", "arguments": {"q": x}}</tool_call> b', [], 'a <tool_call>{"name": "search", "arguments": {"q": x}}</tool_call> b', '', False),
    ('cut off', HERMES, '<tool_call>{"name": "search", "arguments": {"q": "x', [], '<tool_call>{"name": "search", "arguments": {"q": "x', '', False),
    ('no json', HERMES, '<tool_call>"?"</tool_call>', [], '<tool_call>"?"</tool_call>', '', False),
    ('good, then bad', HERMES, '<tool_call>{"name": "now"}</tool_call><tool_call>{"name": 1}</tool_call>', [('now', {})], '<tool_call>{"name": 1}</tool_call>', '', False),
    ('empty tag', HERMES, '<tool_call></tool_call>', [], '<tool_call></tool_call>', '', False),
    ('text stays text', CODER, '<tool_call>\n<function=search>\n<parameter=q>\n007\n</parameter>\n<parameter=n>\n7\n</parameter>\n</function>\n</tool_call>', [('search', {'q': '007', 'n': 7})], '', '', True),
    ('truth as text', CODER, '<tool_call><function=search><parameter=q>true</parameter><parameter=flag>True</parameter></function></tool_call>', [('search', {'q': 'true', 'flag': True})], '', '', True),
    ('no type said', CODER, '<tool_call><function=search><parameter=any>[1, None]</parameter><parameter=one>1</parameter><parameter=maybe>null</parameter><parameter=either>12</parameter></function></tool_call>',
     [('search', {'any': [1, None], 'one': '1', 'maybe': None, 'either': 12})], '', '', True),
    ('not of its type', CODER, '<tool_call><function=search><parameter=n>many</parameter></function></tool_call>', [('search', {'n': 'many'})], '', '', True),
    ('tags in a value', CODER, '<tool_call><function=search><parameter=q>\n<parameter=x> </parameter> x\n</parameter>\n</function></tool_call>', [('search', {'q': '<parameter=x> </parameter> x'})], '', '', True),
    ('unclosed parameter', CODER, '<tool_call><function=search><parameter=q>x</function></tool_call>', [], '<tool_call><function=search><parameter=q>x</function></tool_call>', '', False),
    ('pairs', GLM, '<tool_call>search\n<arg_key>q</arg_key>\n<arg_value>007</arg_value>\n<arg_key>list</arg_key>\n<arg_value>["a"]</arg_value>\n</tool_call>', [('search', {'q': '007', 'list': ['a']})], '', '', True),
    ('bare json', LLAMA, '{"name": "search", "parameters": {"q": "x"}}', [('search', {'q': 'x'})], '', '', True),
    ('two bare', LLAMA, '{"name": "search", "parameters": {"q": "x"}}; {"name": "now", "parameters": {}}', [('search', {'q': 'x'}), ('now', {})], '', '', True),
    ('json answer', LLAMA, '{"name": "Bob", "age": 3}', [], '{"name": "Bob", "age": 3}', '', True),
    ('json answer 2', LLAMA, '{"a": [1, 2]} is it', [], '{"a": [1, 2]} is it', '', True),
    ('python tag', LLAMA, '<|python_tag|>{"name": "search", "parameters": {"q": "x"}}', [('search', {'q': 'x'})], '', '', True),
    ('python tag call', LLAMA, '<|python_tag|>search.call(q="x, y)")', [('search', {'q': 'x, y)'})], '', '', True),
    ('python tag code', LLAMA, '<|python_tag|>print("hi")', [('python', {'code': 'print("hi")'})], '', '', True),
    ('pythonic', LFM, '<|tool_call_start|>[search(q="a, b=1, c)", n=-2, list=[1, {\'k\': None}], flag=True), now()]<|tool_call_end|>ok', [('search', {'q': 'a, b=1, c)', 'n': -2, 'list': [1, {'k': None}], 'flag': True}), ('now', {})], 'ok', '', True),
    ('pythonic by place', LFM, "<|tool_call_start|>[search('x', 3)]<|tool_call_end|>", [('search', {'q': 'x', 'n': 3})], '', '', True),
    ('pythonic broken', LFM, '<|tool_call_start|>[search(q=)]<|tool_call_end|>', [], '<|tool_call_start|>[search(q=)]<|tool_call_end|>', '', False),
    ('mistral', MISTRAL, '[TOOL_CALLS]search[CALL_ID]abc[ARGS]{"q": "x"}[TOOL_CALLS]now[ARGS]{}', [('search', {'q': 'x'}), ('now', {})], '', '', True),
    ('mistral list', MISTRAL, '[TOOL_CALLS][{"name": "search", "arguments": {"q": "x"}}]', [('search', {'q': 'x'})], '', '', True),
    ('mistral short', MISTRAL, '[TOOL_CALLS]search{"q": "x"}', [('search', {'q': 'x'})], '', '', True),
    ('braces', GEMMA, '<|tool_call>call:search{q:<|"|>a}<tool_call|>,b:1<|"|>,n:2,list:[<|"|>x<|"|>,{k:true}]}<tool_call|>', [('search', {'q': 'a}<tool_call|>,b:1', 'n': 2, 'list': ['x', {'k': True}]})], '', '', True),
    ('harmony', HARMONY, '<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"q": "x"}<|call|>', [('search', {'q': 'x'})], '', 'hm', True),
    ('harmony answer', HARMONY, '<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes', [], 'yes', 'hm', True),
]


class Runner:
    def __init__(self, cera, folder):
        self.cera, self.folder, self.n, self.contexts = cera, folder, 0, {}

    def file(self, text):
        if text not in self.contexts:
            self.n += 1
            self.contexts[text] = os.path.join(self.folder, str(self.n))
            with open(self.contexts[text], 'w', encoding='utf-8') as f:
                f.write(text)
        return self.contexts[text]

    def parse(self, template, context, output, piece=None):
        args = [self.cera, 'template', '--file', template, '--context', self.file(json.dumps(context)), '--parse', *(['--piece', str(piece)] if piece else [])]
        got = subprocess.run(args, input=output.encode(), capture_output=True, timeout=60)
        return json.loads(got.stdout) if got.returncode == 0 else {'error': got.stderr.decode()}


def same(a, b):
    """Equal, with 1, 1.0 and true told apart."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def goldens(runner, shared):
    rows = [json.loads(line) for line in open(os.path.join(shared, 'data', 'goldens', 'tool-calls.jsonl'), encoding='utf-8')]

    def one(row):
        path = os.path.join(shared, 'data', 'chat-templates', row['template'])
        return row, [runner.parse(path, row['context'], row['output'], piece) for piece in (None, 1)]
    for row in rows:
        runner.file(json.dumps(row['context']))
    right = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for row, (whole, bytewise) in pool.map(one, rows):
            name = f"{row['template']} {row['case']}"
            ok = 'error' not in whole and whole['complete'] and same(whole['tool_calls'], row['calls'])
            ok = ok and all(whole[k].strip() == row[k].strip() for k in ('content', 'reasoning'))
            right += check(ok, f"{name}: {whole}, want {row['calls']}, {row['content']!r}, {row['reasoning']!r}")
            check(same(whole, bytewise), f'{name}: a byte at a time gives {bytewise}')
    print(f"tool calls: {right} of {len(rows)} right, {len({r['template'] for r in rows})} templates")


def cases(runner):
    context = {'tools': TOOLS, 'messages': [{'role': 'user', 'content': ''}]}
    for name, template, output, calls, content, reasoning, complete in CASES:
        want = {'content': content, 'reasoning': reasoning, 'tool_calls': [{'name': n, 'arguments': a} for n, a in calls], 'complete': complete}
        for piece in (None, 1, 2, 7):
            got = runner.parse(runner.file(template), context, output, piece)
            check(same(got, want), f'{name}, in pieces of {piece}: {got}, want {want}')
    no_tools = runner.parse(runner.file(HERMES), {'messages': context['messages']}, CASES[1][2])
    check(no_tools.get('content') == CASES[1][2] and no_tools['tool_calls'] == [], f'without tools nothing is a call: {no_tools}')
    print(f'cases: {len(CASES)}, whole and in pieces of 1, 2, 7')


def main():
    args = argparse.ArgumentParser()
    args.add_argument('--cera', required=True)
    args.add_argument('--shared')
    a = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(a.cera, folder)
        cases(runner)
        if not a.shared or not os.path.isdir(os.path.join(a.shared, 'data', 'chat-templates')):
            print('SKIP: no shared data')
            return 1 if failures else 77
        goldens(runner, a.shared)
    return 1 if failures else 0


sys.exit(main())
