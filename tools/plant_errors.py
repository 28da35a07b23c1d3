#!/usr/bin/env python3
"""Plants an error in the source of each kernel slot and sees whether the kernel checks catch it.

usage: plant_errors.py [--fast] [--only TEXT] [--jobs N] [--keep]
  --fast   one planted error of each kind, under a minute (CI); without it every one (make test-full)
  --only   planted errors whose slot, tier or description holds TEXT

A copy of src/, include/ and tests/check/ is built once in a temporary folder; then each error is planted in turn, what it changes
is rebuilt, and `cera_check --tier T --slot S` must exit 1. Prints a table; exits 1 if an error survives or can no longer be
planted (its text is not in the source exactly once), 2 on misuse. Tiers that this processor lacks are listed as skipped."""
import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BASE = ["-std=gnu11", "-O1", "-ffp-contract=off", "-fno-math-errno", "-D_GNU_SOURCE", "-w"]
AVX2 = ["-mavx2", "-mfma", "-mf16c", "-mbmi2"]
AVX512 = AVX2 + ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]
TIER_FLAGS = {"avx2": AVX2, "avxvnni": AVX2 + ["-mavxvnni"], "avx512": AVX512, "avx512vnni": AVX512 + ["-mavx512vnni"],
              "avx512bf16": AVX512 + ["-mavx512vnni", "-mavx512bf16"], "dotprod": ["-march=armv8.2-a+dotprod"],
              "i8mm": ["-march=armv8.2-a+dotprod+i8mm"]}
ARM = platform.machine() == "aarch64"

K = "src/kernels/"
MM, QT, V512, V256 = K + "x86/matmul_tmpl.h", K + "x86/quant_tmpl.h", K + "x86/quant_vec512.h", K + "x86/quant_vec256.h"
MF, NN, AT = K + "matmul_float_tmpl.h", K + "nn_tmpl.h", K + "attend_tmpl.h"

# (kind, slot, tiers, file, text, replacement). Kinds: last lane, last block, sub-scale, sign, tail, lookup, scale, column.
X3 = "avx512vnni avxvnni avx2"
PLANTS = [
    # the loops that all quantized types share
    ("last lane", "matmul_q4_0", X3, MM, "f_store(out, update(t, sum[j][g], d, m, row + VEC_ROWS * g, x, c + j, f_load(out)));",
     "f_store(out, update(t, sum[j][g], d, m, row + VEC_ROWS * g, x, c + j, f_load(out))); if (row + VEC_ROWS * (g + 1) == 32) out[VEC_ROWS - 1] += 1e-6f;"),
    ("last lane", "matmul_q4_k", X3, MM, "        w += chunk_bytes(t);\n    }\n    f_store(out, acc);",
     "        w += chunk_bytes(t);\n    }\n    f_store(out, acc); out[VEC_ROWS - 1] *= 1.000001f;"),
    ("last block", "matmul_q8_0", X3, MM, "for (int first = 0; first < n_blocks; first += step_blocks(t)) {\n            for (int g",
     "for (int first = 0; first < n_blocks - ((b + n_blocks) * 32 == x->k && n_blocks > 1); first += step_blocks(t)) {\n            for (int g"),
    ("tail", "matmul_q5_0", X3, MM, "int n_blocks = k / 32 - b < CHUNK_BLOCKS ? k / 32 - b : CHUNK_BLOCKS;\n        chunk_scales",
     "int n_blocks = k / 32 - b < CHUNK_BLOCKS ? (k / 32 - b > 1 ? k / 32 - b - 1 : 1) : CHUNK_BLOCKS;\n        chunk_scales"),
    ("tail", "matmul_q4_1", X3, MM, "for (int r = 0; r < n_rows; r++) memcpy(copy", "for (int r = 0; r < n_rows - (n_rows == 31); r++) memcpy(copy"),
    ("tail", "matmul_iq4_nl", "avx512vnni", MM, "bool whole = n_rows == CERA_PANEL_ROWS;", "bool whole = n_rows >= CERA_PANEL_ROWS - 1;"),
    ("column", "matmul_mxfp4", X3, MM, "for (; c < n_cols; c++) stream(t, 1,", "for (; c < n_cols - (n_cols > 16); c++) stream(t, 1,"),
    ("column", "matmul_q6_k", X3, MM, "size_t at = (size_t)(b + first + j) * n + (size_t)column;",
     "size_t at = (size_t)(b + first + j) * n + (size_t)(column & 15);"),
    ("sign", "matmul_q5_1", X3, MM, "acc = f_fma(f_load(&m[0][row]), f_set(x->s[c]), acc);", "acc = f_fma(f_neg(f_load(&m[0][row])), f_set(x->s[c]), acc);"),
    ("sign", "matmul_q4_0", X3, MM, "int offset = -byte_offset(t);", "int offset = byte_offset(t);"),
    ("sub-scale", "matmul_q2_k", X3, MM, "acc = f_fma(f_load(&m[h][row]), f_set(x->s16[2 * c + h]), acc);",
     "acc = f_fma(f_load(&m[h][row]), f_set(x->s16[2 * c]), acc);"),
    ("sub-scale", "matmul_q6_k", X3, MM, "acc = f_fma(f_mul(f_load(&d[h][row]), d_a), f_from(sum[h]), acc);",
     "acc = f_fma(f_mul(f_load(&d[0][row]), d_a), f_from(sum[h]), acc);"),
    ("order", "matmul_q4_k", X3, MM, "acc = f_fma(f_mul(f_load(&d[h][row]), d_a), f_from(sum[h]), acc);",
     "acc = f_fma(f_load(&d[h][row]), f_mul(d_a, f_from(sum[h])), acc);"),
    ("sub-scale", "matmul_q3_k", "avx512vnni avxvnni", MM, "fold_scale(t, u[g][i], fold[g][i / 4])", "fold_scale(t, u[g][i], fold[g][i / 5])"),
    ("sign", "matmul_q3_k", "avx512vnni avxvnni", MM, "v_set32(-4 * x->sum16[h])", "v_set32(-4 * x->sum16[0])"),
    ("sign", "matmul_q3_k", "avx2", MM, "return v_sub32(v_zero(), v_sll32(both, 2));", "return v_sll32(both, 2);"),
    ("overflow", "matmul_q5_k", "avx2", MM, "case CERA_Q2_K: return 4; /* 3 */", "case CERA_Q2_K: return 8; /* 3 */"),
    ("overflow", "matmul_q6_k", "avx2", MM, "case CERA_Q6_K: return 2; /* 63 */", "case CERA_Q6_K: return 4; /* 63 */"),
    ("sign", "matmul_q8_0", "avx2", MM, "v_maddubs(v_abs8(u[p]), v_sign8(a, u[p]))", "v_maddubs(v_abs8(u[p]), v_sign8(a, v_add8(u[p], v_set8(1))))"),
    # layouts
    ("sub-scale", "matmul_q4_k", X3, QT, "mn[1] = v_or(v_and(v_srl32(z[3], 4), low4), v_and(v_srl32(z[2], 2), bits45));",
     "mn[1] = v_or(v_and(v_srl32(z[3], 4), low4), v_and(v_srl32(z[1], 2), bits45));"),
    ("sub-scale", "matmul_q5_k", X3, QT, "sc[1] = v_or(v_and(z[3], low4), v_and(v_srl32(z[1], 2), bits45));",
     "sc[1] = v_or(v_and(z[3], low4), v_and(v_srl32(z[1], 2), v_set8(16)));"),
    ("sub-scale", "matmul_q6_k", X3, QT, "f_store(&s->d[i][first], f_mul(d, f_from(signed_byte_of(z[i / 4], i % 4))));",
     "f_store(&s->d[i][first], f_mul(d, f_from(i == 15 ? byte_of(z[3], 3) : signed_byte_of(z[i / 4], i % 4))));"),
    ("sub-scale", "matmul_iq4_xs", X3, QT, "v_srl32(z[0], 12 + 2 * j)", "v_srl32(z[0], 12 + 2 * (j & 6))"),
    ("sub-scale", "matmul_q2_k", X3, QT, "i % 4 * 8 + 4), v_set32(15)", "i % 4 * 8 + 4), v_set32(7)"),
    ("sub-scale", "matmul_q3_k", X3, QT, ": v_srl32(z[2], 2);", ": v_srl32(z[2], 4);"),
    ("sign", "matmul_q4_k", X3, QT, "fvec d = f_low_f16(z[0]), dmin = f_neg(high_f16(z[0]));", "fvec d = f_low_f16(z[0]), dmin = high_f16(z[0]);"),
    ("lookup", "matmul_iq4_nl", X3, QT, "38, 53, 69, 89, 113);", "38, 53, 69, 89, 112);"),
    ("lookup", "matmul_mxfp4", X3, QT, "-3, -4, -6, -8, -12);", "-3, -4, -6, -8, -11);"),
    ("scale", "matmul_mxfp4", X3, QT, "return f_bits(v_below2(e, small, usual));", "return f_bits(usual);"),
    ("scale", "matmul_q6_k", X3, QT, "join(shifted(r->v[j % 2 * 8 + i], j / 2 * 4), 15, shifted(r->v[16 + i], 2 * j - 4), 48)",
     "join(shifted(r->v[j % 2 * 8 + i], j / 2 * 4), 15, shifted(r->v[16 + i], 2 * (j & 2) - 4), 48)"),
    ("scale", "matmul_q5_k", X3, QT, "shifted(c->v[i], j - 4), 16)", "shifted(c->v[i & 3], j - 4), 16)"),
    ("scale", "matmul_q8_0", "avx512vnni avxvnni", QT, "v_xor(r->v[i], v_set8(0x80))", "v_xor(r->v[i], v_set8(0x7f))"),
    ("scale", "matmul_q5_1", "avx512vnni", V512, "v_srl32(qh, 4 * i), table", "v_srl32(qh, 4 * (i & 6)), table"),
    ("scale", "matmul_q5_0", "avxvnni avx2", V256, "v_shuffle8(v_srl32(qh, 4 * i), spread)", "v_shuffle8(v_srl32(qh, 4 * (i & 6)), spread)"),
    ("last lane", "matmul_q4_0", "avx512vnni", V512, "return _mm512_inserti32x4(z, load16(p + by12), 3);",
     "return _mm512_inserti32x4(z, load16(p + 2 * by4), 3);"),
    ("last lane", "matmul_q4_1", "avx512vnni", V512, "v_transpose(z, out + 4 * half);", "v_transpose(z, out);"),
    # one column of q8_0 on 256 bits
    ("last lane", "matmul_q8_0", "avx512vnni", K + "x86/matmul_one_avx512vnni.c", "row < CERA_PANEL_ROWS; row += VEC_ROWS", "row < CERA_PANEL_ROWS - 8; row += VEC_ROWS"),
    # float types
    ("tail", "matmul_f32", "avx512 avx2", MF, "if (n % LANES_K == 0) return;", "return;"),
    ("tail", "matmul_f16", "avx512 avx2", MF, "memcpy(wide_w[r], w[r], (size_t)left * weight_size(t))", "memcpy(wide_w[r], w[r], (size_t)(left - (left > 1)) * weight_size(t))"),
    ("last lane", "matmul_bf16", "avx512bf16 avx512 avx2", MF, "for (int i = 0; i < ONE_ROWS; i++) tile[r + i] = tree_sum(acc[i]);",
     "for (int i = 0; i < ONE_ROWS; i++) tile[r + i] = tree_sum(acc[i & ~1]);"),
    ("column", "matmul_f16", "avx512 avx2", MF, "acts_stride(t, x), begin, n,", "acts_stride(t, x), begin ? 0 : begin, n,"),
    ("last lane", "matmul_f32", "avx512", K + "x86/matmul_float_avx512.c", "_mm512_setr_epi32(0, 4, 8, 12,", "_mm512_setr_epi32(0, 4, 8, 8,"),
    ("sign", "matmul_bf16", "avx512bf16", K + "x86/matmul_bf16_avx512bf16.c", "_mm512_shuffle_ps(a, b, 0xdd)", "_mm512_shuffle_ps(a, b, 0x88)"),
    # encoder
    ("scale", "encode_q8", "avx512", K + "x86/encode_avx512.c", "amax >= 0x1p-118f", "amax >= 0x1p-110f"),
    ("scale", "encode_q8", "avx512", K + "x86/encode_avx512.c", "most >= 0x7f800000", "most > 0x7f800000"),
    ("last lane", "encode_q8", "avx2", K + "x86/encode_avx2.c", "for (int i = 0; i < 32; i += 8)", "for (int i = 0; i < 24; i += 8)"),
    ("sum", "encode_q8", "avx2", K + "x86/encode_avx2.c", "out->s16[at * 2 + 1] = d * (float)sum1;", "out->s16[at * 2 + 1] = d * (float)sum0;"),
    ("column", "acts_gather", "c", K + "ref/acts.c", "memcpy(dst->s16 + to * 2, src->s16 + from * 2, 2 * sizeof *dst->s16);", "memcpy(dst->s16 + to * 2, src->s16 + from * 2, sizeof *dst->s16);"),
    ("sign", "matmul_q4_k", "c", K + "ref/matmul.c", "acc = fmaf(w->min[0], x->s[at], acc);", "acc = fmaf(-w->min[0], x->s[at], acc);"),
    ("sub-scale", "matmul_q6_k", "c", K + "ref/matmul.c", "acc = fmaf(w->d * (float)w->scale[1] * d_a, (float)second, acc);",
     "acc = fmaf(w->d * (float)w->scale[0] * d_a, (float)second, acc);"),
    # norms, activations, rope, attention
    ("tail", "activate", "avx512 avx2", NN, "v16_store_n(out + i, v16_activate(act, v16_load_n(x + i, n - i)), n - i);", "v16_store_n(out + i, v16_activate(act, v16_load_n(x + i, n - i)), n - i - 1);"),
    ("tail", "glu", "avx512 avx2", NN, "v16 u = v16_up(act, v16_load_n(up + i, n - i));", "v16 u = v16_up(act, v16_load_n(up + i, n - i - 1));"),
    ("sign", "glu", "avx512 avx2", NN, "return v16_add(u, v16_set(1.0f));", "return v16_add(u, v16_set(-1.0f));"),
    ("tail", "sigmoid", "avx512 avx2", NN, "if (i < n) v16_store_n(x + i, v16_gated(one, v16_load_n(x + i, n - i)), n - i);", ""),
    ("tail", "softcap", "avx512 avx2", NN, "if (i < n) v16_store_n(x + i, v16_softcap(v16_load_n(x + i, n - i), cap), n - i);", ""),
    ("last lane", "softmax", "avx512 avx2", NN, "sum = v16_add(sum, v16_load_n(x + whole, tail));", ""),
    ("last block", "attend_softmax", "avx512 avx2", NN, "for (int i = hi; i < to; i++) s[i] = -INFINITY;", "for (int i = hi + 1; i < to; i++) s[i] = -INFINITY;"),
    ("sign", "attend_merge", "avx512 avx2", NN, "*l = fmaf(*l, v16_first(scale), l2 * v16_first(scale2));", "*l = fmaf(*l, v16_first(scale2), l2 * v16_first(scale));"),
    ("tail", "rms_norm", "avx512 avx2", NN, "v16 v = v16_load_n(x + i, n - i);\n        sum = v16_fma(v, v, sum);", "v16 v = v16_load_n(x + i, n - i - 1);\n        sum = v16_fma(v, v, sum);"),
    ("sign", "layer_norm", "avx512 avx2", NN, "v = v16_fma(v, wv, bv);", "v = v16_fma(v, wv, v16_negate(bv));"),
    ("tail", "f32_to_bf16", "avx512 avx2", NN, "v16_store_bf16(part, v16_load_n(x + i, n - i));", "v16_store_bf16(part, v16_load_n(x + i, n - i - 1));"),
    ("tail", "f32_to_f16", "avx512 avx2", NN, "v16_store_f16(part, v16_load_n(x + i, n - i));", "v16_store_f16(part, v16_load_n(x + i, n - i - 1));"),
    ("last block", "shortconv", "avx512 avx2", NN, "if (l > 1) v16_store(state_out + (size_t)(l - 2) * h + c, b);", "if (l > 2) v16_store(state_out + (size_t)(l - 2) * h + c, b);"),
    ("tail", "add_scaled", "avx512 avx2", NN, "v16_store_n(y + i, v16_fma(v16_load_n(x + i, n - i), s, v16_load_n(y + i, n - i)), n - i);", ";"),
    ("tail", "argmax", "avx512 avx2", NN, "sound = sound && x[i] < INFINITY;", "sound = sound && x[i] <= INFINITY;"),
    ("sign", "rope_table", "avx512 avx2", NN, "c = (quadrant + 1) & 2 ? -c : c;", "c = quadrant & 2 ? -c : c;"),
    ("sign", "rope_kv", "avx512 avx2", NN, "v16_store(y + i, v16_fma(x1, c, v16_mul(x0, s)));", "v16_store(y + i, v16_fma(x1, c, v16_negate(v16_mul(x0, s))));"),
    ("tail", "rope_kv", "avx512 avx2", NN, "for (; i < d; i++) y[i] = x[i] * factor * w[i];", "for (; i < d; i++) y[i] = x[i] * factor;"),
    ("last block", "attend_scores_f16", "avx512 avx2", AT, "steps = d / pairs_of(m);", "steps = d / pairs_of(m) - 1;"),
    ("last lane", "attend_scores_f32", "avx512 avx2", AT, "if (b == n_blocks) return;", "if (b + 1 == n_blocks && b) return;"),
    ("last block", "attend_values_bf16", "avx512bf16 avx512 avx2", AT, "(end + pairs - 1) / pairs, d};", "end / pairs, d};"),
    ("tail", "attend_values_f16", "avx512 avx2", AT, "vf_store_n(to, sum, live / lanes);", "vf_store_n(to, sum, live / lanes - 1);"),
    # math shared by C and the tiers: only the bounds against double can see these
    ("scale", "attend_softmax", "avx512", K + "nn_math.h", "#define NN_E3 0x1.123b02p-7f", "#define NN_E3 0x1.124b02p-7f"),
    ("scale", "activate", "avx512", K + "nn_math.h", "#define NN_Q9 0x1.b34b92p-7f", "#define NN_Q9 0x1.b34f92p-7f"),
    ("scale", "softcap", "avx512", K + "nn_math.h", "#define NN_T4 -0x1.75e1aep-8f", "#define NN_T4 -0x1.79e1aep-8f"),
    ("scale", "rope_table", "avx512", K + "nn_math.h", "#define NN_PI2_2 0x1.1a62633145c07p-54", "#define NN_PI2_2 0.0"),
    ("scale", "rope_table", "avx512 avx2", NN, "fma(-n, NN_PI2_1, p)) + low, u = r * r;", "fma(-n, NN_PI2_1, p)), u = r * r;"),
    ("overflow", "activate", "avx2", NN, "v16_if_less(x, v16_set(NN_EXP_HI), v16_times_2n(p, z), v16_set(INFINITY))", "v16_times_2n(p, z)"),
    ("overflow", "softmax", "avx512", K + "x86/nn_vec_avx512.h", "_CMP_NLT_UQ), p, n);", "_CMP_GE_OQ), p, n);"),
    ("overflow", "rope_kv", "avx512 avx2", NN, "x = v16_if_less(x, v16_set(-max), v16_set(-max), x);", ""),
    ("overflow", "rope_kv", "avx512 avx2", NN, "return value ? v16_if_nan(x, v16_set(0.0f), x) : x;", "return x;"),
    ("order", "rope_kv", "avx512", K + "x86/nn_vec_avx512.h", "_mm512_mask_storeu_epi16(p + 2 * (size_t)i, pairs & half, wide);",
     "_mm512_mask_storeu_epi16(p + 2 * (size_t)i, pairs, _mm512_mask_blend_epi16(half, _mm512_maskz_loadu_epi16(pairs, p + 2 * (size_t)i), wide));"),
    ("sign", "rope_kv", "avx512 avx2", NN, "s = v16_negate_even(v16_load_twice(sine + i)), v", "s = v16_load_twice(sine + i), v"),
    ("column", "rope_kv", "avx512 avx2", NN, "rotate_interleaved(x + a->rot_first,", "rotate_interleaved(x,"),
    ("column", "rope_kv", "avx512 avx2", NN, "(size_t)(j / 2) * (size_t)d * 2, j & 1, bits, d);", "(size_t)(j / 2) * (size_t)d * 2, 0, bits, d);"),
    ("column", "attend_scores_f16", "avx512 avx2", AT, "float *to = out + (size_t)i * SEGMENT + (size_t)b * BLOCK;",
     "float *to = out + (size_t)(i == 2 && nq == 3 ? 1 : i) * SEGMENT + (size_t)b * BLOCK;"),
    ("order", "attend_scores_bf16", "avx512 avx2", AT, "if (m != BF16 && m != DOT) return (rows){x, stride};", "return (rows){x, stride};"),
    ("sign", "attend_values_f32", "avx512 avx2", AT, "sum = vf_add(sum, vf_zero()); /* -0 becomes 0 */", ""),
    ("order", "argmax", "avx512 avx2", NN, "for (i = 0; i + 16 <= n && !v16_any_equal(v16_load(x + i), top);) i += 16;",
     "for (i = n / 16 * 16; i >= 16 && v16_any_equal(v16_load(x + i - 16), top);) i -= 16;"),
    ("tail", "layer_norm", "avx512 avx2", NN, "float part[16] = {0};\n        v16_store_n(part, v16_sub(v16_load_n(x + i, n - i), m), n - i);\n        v16 d = v16_load(part);",
     "v16 d = v16_sub(v16_load_n(x + i, n - i), m);"),
]
ARM_PLANTS = [
    ("last lane", "matmul_q4_0", "neon dotprod i8mm", K + "arm/matmul_arm_tmpl.h", "row < n_rows; row += 4", "row + 1 < n_rows; row += 4"),
    ("sub-scale", "matmul_q6_k", "neon dotprod i8mm", K + "arm/quant_neon.h", "p[192 + 2 * j + h]", "p[192 + 2 * j]"),
    ("sign", "matmul_q5_1", "neon dotprod i8mm", K + "arm/matmul_arm_tmpl.h", "acc = vfmaq_f32(acc, vld1q_f32(&p->m[0][row]), vdupq_n_f32(x->s[at]));",
     "acc = vfmsq_f32(acc, vld1q_f32(&p->m[0][row]), vdupq_n_f32(x->s[at]));"),
    ("column", "matmul_q8_0", "i8mm", K + "arm/matmul_arm_tmpl.h", "sum[1][h] = vuzp2q_s32(pair[0], pair[1]);", "sum[1][h] = vuzp1q_s32(pair[0], pair[1]);"),
    ("tail", "matmul_f16", "neon", MF, "if (n % LANES_K == 0) return;", "return;"),
    ("tail", "activate", "neon", NN, "v16_store_n(out + i, v16_activate(act, v16_load_n(x + i, n - i)), n - i);",
     "v16_store_n(out + i, v16_activate(act, v16_load_n(x + i, n - i)), n - i - 1);"),
    ("order", "rms_norm", "neon", K + "arm/nn_vec_neon.h", "vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d))", "vaddq_f32(vaddq_f32(x.a, x.b), vaddq_f32(x.c, x.d))"),
    ("sign", "rope_kv", "neon", NN, "s = v16_negate_even(v16_load_twice(sine + i)), v", "s = v16_load_twice(sine + i), v"),
    ("scale", "attend_scores_bf16", "neon", K + "arm/attend_neon.c", "vshll_n_u16(vld1_u16((const uint16_t *)(const void *)p), 16)", "vshll_n_u16(vld1_u16((const uint16_t *)(const void *)p), 15)"),
    ("last block", "attend_values_f16", "neon", AT, "(end + pairs - 1) / pairs, d};", "end / pairs, d};"),
]


def tier_of(path):
    name = os.path.splitext(os.path.basename(path))[0].split("_")[-1]
    return name if name in TIER_FLAGS else None


class Tree:
    """A copy of the sources, its objects, and which files each object was made from."""

    def __init__(self, folder, jobs):
        self.folder, self.jobs, self.objects = folder, jobs, {}
        for part in ("src", "include", "tests/check"):
            shutil.copytree(os.path.join(ROOT, part), os.path.join(folder, part))
        skip = "kernels/x86/" if ARM else "kernels/arm/"
        for layer in ("base", "format", "kernels"):
            for at, _, files in os.walk(os.path.join(folder, "src", layer)):
                for f in files:
                    path = os.path.join(at, f)
                    if f.endswith(".c") and skip not in path and "kernels/wasm/" not in path:
                        self.objects[path] = os.path.join(folder, f[:-2] + ".o")
        check = os.path.join(folder, "tests", "check")
        for f in os.listdir(check):
            if f.endswith(".c"):
                self.objects[os.path.join(check, f)] = os.path.join(folder, f[:-2] + ".o")
        self.compile(list(self.objects))

    def compile_one(self, source):
        flags = TIER_FLAGS.get(tier_of(source), []) if "/kernels/" in source else []
        command = [os.environ.get("CC", "gcc"), *BASE, *flags, "-I" + self.folder + "/src", "-I" + self.folder + "/include",
                   "-I" + self.folder + "/tests/check", "-MMD", "-c", source, "-o", self.objects[source]]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True)

    def compile(self, sources):
        with ThreadPoolExecutor(self.jobs) as pool:
            for source, done in zip(sources, pool.map(self.compile_one, sources)):
                if done.returncode:
                    return f"{os.path.basename(source)} does not compile: {done.stderr.strip().splitlines()[0]}"
        program = os.path.join(self.folder, "cera_check")
        done = subprocess.run([os.environ.get("CC", "gcc"), "-o", program, *self.objects.values(), "-lm", "-lpthread"], stderr=subprocess.PIPE, text=True)
        return None if done.returncode == 0 else "does not link: " + done.stderr.strip()

    def depends(self, source, path):
        with open(self.objects[source][:-2] + ".d") as f:
            return path in f.read().replace("\\\n", " ").split()

    def users(self, path, tier):
        """The sources of `tier` that include path; all of them where none is named for the tier."""
        every = [s for s in self.objects if s == path or self.depends(s, path)]
        own = [s for s in every if tier_of(s) == tier]
        return own or every

    def run(self, tier, slot):
        command = [os.path.join(self.folder, "cera_check"), "--tier", tier, "--slot", slot]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        return done.returncode, done.stdout.strip().splitlines()[-1]


def plant(tree, kind, slot, tier, relative, text, replacement):
    path = os.path.join(tree.folder, relative)
    with open(path) as f:
        original = f.read()
    if original.count(text) != 1:
        return f"STALE: the text is {original.count(text)} times in {relative}"
    users = tree.users(path, tier)
    saved = {s: open(tree.objects[s], "rb").read() for s in users}
    try:
        with open(path, "w") as f:
            f.write(original.replace(text, replacement))
        wrong = tree.compile(users)
        if wrong:
            return "STALE: " + wrong
        code, last = tree.run(tier, slot)
        return "caught" if code == 1 else "SURVIVED: " + last if code == 0 else f"exit {code}: {last}"
    finally:
        with open(path, "w") as f:
            f.write(original)
        for source, content in saved.items():
            with open(tree.objects[source], "wb") as f:
                f.write(content)


def cases(args):
    chosen, kinds = [], set()
    every = ARM_PLANTS if ARM else PLANTS
    for place in range(3):  # each error in its first tier, then the second, ...
        for kind, slot, tiers, relative, text, replacement in every:
            if place >= len(tiers.split()):
                continue
            tier = tiers.split()[place]
            line = f"{kind} {slot} {tier}"
            if args.only and args.only not in line:
                continue
            if args.fast and kind in kinds:
                continue
            kinds.add(kind)
            chosen.append((kind, slot, tier, relative, text, replacement))
    return chosen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    chosen = cases(args)
    if not chosen:
        print("no such planted error", file=sys.stderr)
        return 2
    folder = tempfile.mkdtemp(prefix="cera-plant-")
    bad = skipped = 0
    try:
        tree = Tree(folder, args.jobs)
        clean = {pair: tree.run(*pair) for pair in sorted({(tier, slot) for _, slot, tier, *_ in chosen})}
        for kind, slot, tier, *rest in chosen:
            code, last = clean[tier, slot]
            if code:
                result, failed = "the unchanged source fails: " + last, True
            elif "skipped" in last and not last.endswith(" 0 skipped"):
                result, failed = "skipped: this processor lacks the tier", False
                skipped += 1
            else:
                result = plant(tree, kind, slot, tier, *rest)
                failed = result != "caught"
            bad += failed
            print(f"{'FAIL' if failed else 'ok  '} {tier:11s} {slot:20s} {kind:10s} {result}", flush=True)
    finally:
        if args.keep:
            print("kept " + folder)
        else:
            shutil.rmtree(folder)
    print(f"{len(chosen) - bad - skipped} passed, {bad} failed, {skipped} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
