"""Writes the model in Hugging Face form: bf16 safetensors and its JSON files."""

import json
import pathlib

import torch
from safetensors.torch import save_file

import chat


def rounded(model):
    """The parameters as they are published: rounded to bf16 once, to nearest even."""
    return {name: p.detach().to(torch.bfloat16).cpu().contiguous() for name, p in model.named_parameters()}


def write(model, folder):
    """Everything but tokenizer.json, which training has written there already."""
    folder = pathlib.Path(folder)
    s = model.shape
    save_file(rounded(model), folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "torch_dtype": "bfloat16",
        "vocab_size": s.vocabulary, "hidden_size": s.hidden, "intermediate_size": s.feed_forward,
        "num_hidden_layers": s.layers, "num_attention_heads": s.heads, "num_key_value_heads": s.kv_heads,
        "head_dim": s.head_dim, "hidden_act": "silu", "max_position_embeddings": s.context, "rms_norm_eps": s.epsilon,
        "rope_theta": s.rope_theta, "rope_scaling": None, "attention_bias": False, "mlp_bias": False,
        "attention_dropout": 0.0, "initializer_range": 0.02, "tie_word_embeddings": True, "use_cache": True,
        "bos_token_id": chat.TURN_START, "eos_token_id": chat.TURN_END, "pad_token_id": chat.END_OF_TEXT,
    }
    generation = {"bos_token_id": chat.TURN_START, "eos_token_id": chat.TURN_END, "pad_token_id": chat.END_OF_TEXT,
                  "do_sample": False, "max_new_tokens": 256}
    tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": s.context, "add_bos_token": False,
                 "bos_token": chat.SPECIAL_TOKENS[chat.TURN_START], "eos_token": chat.SPECIAL_TOKENS[chat.TURN_END],
                 "pad_token": chat.SPECIAL_TOKENS[chat.END_OF_TEXT], "clean_up_tokenization_spaces": False}
    for name, value in (("config", config), ("generation_config", generation), ("tokenizer_config", tokenizer)):
        (folder / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n")
    (folder / "chat_template.jinja").write_text(chat.TEMPLATE.read_text())
