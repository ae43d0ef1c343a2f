/* A Hugging Face config.json: the figures of a model of the families that are computed, in every spelling
 * that is in use. What the engine doesn't compute is refused by name, never ignored. */
#ifndef SF_MODEL_HF_CONFIG_H
#define SF_MODEL_HF_CONFIG_H

#include "base/err.h"
#include "device/plan.h"

typedef struct sf_hf_config sf_hf_config;

/* checkpoint: a directory, or a file in it; borrowed, it outlives the object and every error record that
 * names it. Reads config.json of that directory. Spellings: torch_dtype or dtype; rope_theta and
 * rope_scaling, or rope_parameters; type or rope_type; a token id or a list of them; head_dim,
 * num_key_value_heads and the rest absent or null where the family has a default. Errors name config.json and
 * the key. SF_FORMAT: broken, missing, of another type or out of range, two spellings that disagree.
 * SF_UNSUPPORTED: another model_type or architecture, a sliding window that is in use, quantization_config,
 * experts, an activation other than silu, biases other than Qwen2's, a kind of RoPE other than default,
 * linear, llama3 and yarn, rotary dimensions that aren't the whole head, another dtype. */
SF_CHECKED sf_code sf_hf_config_open(const char *checkpoint, sf_hf_config **out, sf_err *err);
void sf_hf_config_close(sf_hf_config *c);             /* NULL is fine */
const char *sf_hf_config_path(const sf_hf_config *c); /* the checkpoint, as given */

/* All of it that a config.json says: family ("llama" for Mistral too), shapes, context, norm_eps, rope, heads
 * tied or not, qkv_bias, qk_norm, bos (-1: none said), eos (of config.json alone). Strings are literals. The
 * rest is 0. */
const sf_model_desc *sf_hf_config_model(const sf_hf_config *c);
/* Whether the key stands there with a value that isn't null. */
bool sf_hf_config_has(const sf_hf_config *c, const char *key);

#endif
