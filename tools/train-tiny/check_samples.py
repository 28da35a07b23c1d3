#!/usr/bin/env python3
"""Does the model repeat its training text?  check_samples.py CERA MODEL.gguf DATA/train.txt [--samples 20] [--run 12]

Draws samples with seeds 1.. and looks for runs of 12 words that stand in the training text. Prints each sample's longest copied run;
exit 1 when one reaches the limit.
"""
import argparse, re, subprocess, sys

PROMPTS = ['The people of this country', 'In the morning the captain', 'It is the duty of Congress', 'And the king said unto', 'The sea was',
           'Our farmers', 'The whale', 'Peace', 'My father', 'During the past year', 'He looked at', 'The young men', 'When the ship', 'We must',
           'A wise man', 'The city', 'There was a', 'Every child', 'I have seen', 'The work of']

def words(text): return re.findall(r"[a-z0-9']+", text.lower())

def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('cera'); a.add_argument('model'); a.add_argument('train'); a.add_argument('--samples', type=int, default=20); a.add_argument('--run', type=int, default=12)
    a.add_argument('--tokens', type=int, default=120); a.add_argument('--show', action='store_true'); o = a.parse_args()
    text = words(open(o.train).read()); seen = {}
    for i in range(len(text) - 4): seen.setdefault(tuple(text[i:i + 5]), []).append(i)
    worst = 0
    for n in range(o.samples):
        prompt = PROMPTS[n % len(PROMPTS)]
        out = subprocess.run([o.cera, 'run', '-m', o.model, '-p', prompt, '-n', str(o.tokens), '--seed', str(n + 1)], capture_output=True, text=True, check=True).stdout
        w = words(prompt + out); longest = 0; at = 0
        for i in range(len(w) - 4):
            for j in seen.get(tuple(w[i:i + 5]), []):
                k = 0
                while i + k < len(w) and j + k < len(text) and w[i + k] == text[j + k]: k += 1
                if k > longest: longest, at = k, i
        worst = max(worst, longest); print(f'{n + 1:3d} longest copy {longest:2d} words: {" ".join(w[at:at + longest])}')
        if o.show: print('    ' + (prompt + out).replace('\n', '\n    '))
    print(f'longest copied run in {o.samples} samples: {worst} words (limit {o.run - 1})'); sys.exit(worst >= o.run)

main()
