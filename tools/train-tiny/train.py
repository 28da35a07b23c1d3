#!/usr/bin/env python3
"""Train cera-tiny: an lfm2 model of about 8 million parameters, on the tokens that corpus.py wrote. Needs PyTorch; a GPU helps.

    train.py DATA OUT [--epochs 10] [--dropout 0.1] [--seed 1] ...

Deterministic for a given machine: fixed seed, deterministic kernels. Writes OUT/model.npz (the weights with the least held-out
loss, f32, keys are GGUF tensor names) and OUT/log.jsonl (loss curve). The forward pass is the one of src/model/families/lfm2.c.
"""
import argparse, json, math, os, time
os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SHAPE = dict(vocab=4096, embd=256, layers=9, heads=4, kv=2, head=64, ffn=704, taps=3, attention=(2, 5, 8), base=10000.0, eps=1e-5)

class Norm(nn.Module):
    def __init__(self, n): super().__init__(); self.weight = nn.Parameter(torch.ones(n))
    def forward(self, x): return F.rms_norm(x.float(), (x.shape[-1],), self.weight.float(), SHAPE['eps']).to(x.dtype)

def matrix(k, n): return nn.Linear(k, n, bias=False)

class Attention(nn.Module):
    def __init__(self, s):
        super().__init__(); self.h, self.kv, self.d = s['heads'], s['kv'], s['head']
        self.attn_q, self.attn_k, self.attn_v = matrix(s['embd'], self.h * self.d), matrix(s['embd'], self.kv * self.d), matrix(s['embd'], self.kv * self.d)
        self.attn_output = matrix(self.h * self.d, s['embd']); self.attn_q_norm, self.attn_k_norm = Norm(self.d), Norm(self.d)
    def rotate(self, x, cos, sin):
        a, b = x.float().chunk(2, -1); return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)
    def forward(self, x, cos, sin):
        B, T, _ = x.shape
        q, k, v = (m(x).view(B, T, n, self.d).transpose(1, 2) for m, n in ((self.attn_q, self.h), (self.attn_k, self.kv), (self.attn_v, self.kv)))
        q, k = self.rotate(self.attn_q_norm(q), cos, sin), self.rotate(self.attn_k_norm(k), cos, sin)
        k, v = (t.repeat_interleave(self.h // self.kv, 1) for t in (k, v))
        return self.attn_output(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, -1))

class ShortConv(nn.Module):
    def __init__(self, s):
        super().__init__(); E = s['embd']; self.taps = s['taps']
        self.in_proj, self.out_proj = matrix(E, 3 * E), matrix(E, E); self.conv = nn.Parameter(torch.randn(E, self.taps) * 0.3)
    def forward(self, x, cos, sin):
        b, c, y = self.in_proj(x).chunk(3, -1); g = (b * y).transpose(1, 2)
        g = F.conv1d(F.pad(g, (self.taps - 1, 0)), self.conv.unsqueeze(1).to(g.dtype), groups=g.shape[1]).transpose(1, 2)
        return self.out_proj(c * g)

class Block(nn.Module):
    def __init__(self, s, attention):
        super().__init__(); E, Ff = s['embd'], s['ffn']
        self.attn_norm, self.ffn_norm = Norm(E), Norm(E); self.mix = Attention(s) if attention else ShortConv(s)
        self.ffn_gate, self.ffn_up, self.ffn_down = matrix(E, Ff), matrix(E, Ff), matrix(Ff, E)
    def forward(self, x, cos, sin, drop):
        x = x + drop(self.mix(self.attn_norm(x), cos, sin)); u = self.ffn_norm(x)
        return x + drop(self.ffn_down(F.silu(self.ffn_gate(u)) * self.ffn_up(u)))

class Model(nn.Module):
    def __init__(self, s, dropout):
        super().__init__(); self.s = s; self.token_embd = nn.Embedding(s['vocab'], s['embd']); self.token_embd_norm = Norm(s['embd'])
        self.blk = nn.ModuleList(Block(s, i in s['attention']) for i in range(s['layers'])); self.drop = nn.Dropout(dropout)
        for n, p in self.named_parameters():
            if p.dim() == 2 and 'conv' not in n.split('.')[-1]: nn.init.normal_(p, std=0.02 / (math.sqrt(2 * s['layers']) if n.endswith(('ffn_down.weight', 'attn_output.weight', 'out_proj.weight')) else 1))
    def forward(self, ids):
        T = ids.shape[1]; d = self.s['head']
        angle = torch.arange(T, device=ids.device)[:, None] * self.s['base'] ** (-torch.arange(0, d, 2, device=ids.device) / d)
        x = self.drop(self.token_embd(ids))
        for b in self.blk: x = b(x, angle.cos(), angle.sin(), self.drop)
        return F.linear(self.token_embd_norm(x), self.token_embd.weight)

def gguf_weights(m):
    out = {}
    for n, p in m.named_parameters():
        n = n.replace('.mix.', '.').replace('.in_proj', '.shortconv.in_proj').replace('.out_proj', '.shortconv.out_proj')
        if n.endswith('.conv'): n = n[:-5] + '.shortconv.conv.weight'
        out[n] = p.detach().float().cpu().numpy()
    return out

def main():
    a = argparse.ArgumentParser(description=__doc__); a.add_argument('data'); a.add_argument('out')
    a.add_argument('--epochs', type=float, default=10); a.add_argument('--dropout', type=float, default=0.1); a.add_argument('--seed', type=int, default=1)
    a.add_argument('--stop', type=int, help='end after this many steps (to compare two runs)')
    a.add_argument('--lr', type=float, default=2e-3); a.add_argument('--decay', type=float, default=0.1); a.add_argument('--batch', type=int, default=64); a.add_argument('--context', type=int, default=512)
    o = a.parse_args(); os.makedirs(o.out, exist_ok=True); torch.manual_seed(o.seed); torch.use_deterministic_algorithms(True); torch.set_float32_matmul_precision('high')
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    train, held = (torch.from_numpy(np.fromfile(os.path.join(o.data, n + '.u16'), np.uint16).astype(np.int64)) for n in ('train', 'held'))
    model = Model(SHAPE, o.dropout).to(device); n_params = sum(p.numel() for p in model.parameters())
    matrices = [p for p in model.parameters() if p.dim() == 2]; vectors = [p for p in model.parameters() if p.dim() != 2]
    opt = torch.optim.AdamW([dict(params=matrices, weight_decay=o.decay), dict(params=vectors, weight_decay=0.0)], lr=o.lr, betas=(0.9, 0.95))
    steps = int(o.epochs * len(train) / (o.batch * o.context)); every = max(1, steps // 40); log = open(os.path.join(o.out, 'log.jsonl'), 'w'); best = 1e9; t0 = time.time(); running = []
    held_rows = held[:(len(held) - 1) // o.context * o.context + 1]; hx, hy = held_rows[:-1].view(-1, o.context).to(device), held_rows[1:].view(-1, o.context).to(device)
    train = train.to(device); run = torch.compile(model) if device == 'cuda' else model; gen = torch.Generator(device=device).manual_seed(o.seed)
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            model.eval(); total = 0.0
            with torch.no_grad(), torch.autocast(device, torch.bfloat16):
                for i in range(0, len(hx), 64): total += F.cross_entropy(model(hx[i:i + 64]).float().flatten(0, 1), hy[i:i + 64].flatten(), reduction='sum').item()
            loss = total / hy.numel(); row = dict(step=step, epoch=round(step * o.batch * o.context / len(train), 2), train=round(float(np.mean(running)), 4) if running else None, held=round(loss, 4), seconds=round(time.time() - t0, 1))
            print(json.dumps(row), flush=True); log.write(json.dumps(row) + '\n'); running = []
            if loss < best: best = loss; np.savez(os.path.join(o.out, 'model.npz'), **gguf_weights(model))
            model.train()
        if step == steps or step == o.stop: break
        lr = o.lr * (min(1, (step + 1) / 100) if step < 100 else 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - 100) / max(1, steps - 100))))
        for g in opt.param_groups: g['lr'] = lr
        at = torch.randint(0, len(train) - o.context - 1, (o.batch,), generator=gen, device=device)
        rows = train[at[:, None] + torch.arange(o.context + 1, device=device)]
        with torch.autocast(device, torch.bfloat16): loss = F.cross_entropy(run(rows[:, :-1]).float().flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad(set_to_none=True); loss.backward(); nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); running.append(loss.item())
    print(json.dumps(dict(parameters=n_params, best_held=round(best, 4), options=vars(o))))

main()
