#!/usr/bin/env python3
"""Write cera-tiny as GGUF: export.py DATA/tokenizer.json OUT/model.npz cera-tiny.gguf      (pip install numpy gguf)

Matrices are Q8_0, norms and convolution taps F32.
"""
import json, sys
import numpy as np
import gguf

def main():
    tokenizer, weights, out = sys.argv[1:]
    t = json.load(open(tokenizer)); w = np.load(weights); vocab = sorted(t['model']['vocab'], key=t['model']['vocab'].get)
    special = {a['content'] for a in t['added_tokens']}; layers = 1 + max(int(n.split('.')[1]) for n in w.files if n.startswith('blk.'))
    g = gguf.GGUFWriter(out, 'lfm2'); E = w['token_embd.weight'].shape[1]
    g.add_name('cera-tiny'); g.add_description('8M-parameter base model trained on public-domain English by the cera project'); g.add_license('CC0-1.0')
    g.add_float32('general.sampling.temp', 1.0); g.add_float32('general.sampling.min_p', 0.1)  # what the samples in the README were drawn with
    attention = ['blk.%d.attn_q.weight' % i in w.files for i in range(layers)]; head = w[next(n for n in w.files if n.endswith('attn_q_norm.weight'))].shape[0]
    first = attention.index(True); kv = w['blk.%d.attn_k.weight' % first].shape[0] // head
    g.add_block_count(layers); g.add_context_length(512); g.add_embedding_length(E); g.add_feed_forward_length(w['blk.0.ffn_up.weight'].shape[0])
    g.add_head_count(w['blk.%d.attn_q.weight' % first].shape[0] // head); g.add_head_count_kv([kv if a else 0 for a in attention]); g.add_key_length(head); g.add_value_length(head)
    g.add_layer_norm_rms_eps(1e-5); g.add_rope_freq_base(10000.0); g.add_vocab_size(len(vocab)); g.add_uint32('lfm2.shortconv.l_cache', w['blk.0.shortconv.conv.weight'].shape[1]); g.add_file_type(7)
    g.add_tokenizer_model('gpt2'); g.add_tokenizer_pre('llama-bpe'); g.add_token_list(vocab); g.add_token_types([3 if v in special else 1 for v in vocab])
    g.add_token_merges([m if isinstance(m, str) else ' '.join(m) for m in t['model']['merges']])
    g.add_bos_token_id(0); g.add_eos_token_id(0); g.add_pad_token_id(3); g.add_add_bos_token(True)
    for name in w.files:
        x = np.ascontiguousarray(w[name], np.float32)
        if x.ndim == 2 and 'shortconv.conv' not in name: g.add_tensor(name, gguf.quantize(x, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else: g.add_tensor(name, x)
    g.write_header_to_file(); g.write_kv_data_to_file(); g.write_tensors_to_file(); g.close()

main()
