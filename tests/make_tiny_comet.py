"""Write a reference-free COMET model with random weights: ``python make_tiny_comet.py FOLDER``, with COMET's own interpreter.

It knows nothing, but the real ``comet-score`` loads and runs it as any other, without a download.
"""

import sys
from pathlib import Path

import pytorch_lightning
import torch
import yaml
from comet.models.regression.referenceless import ReferencelessRegression
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import XLMRobertaConfig, XLMRobertaModel, XLMRobertaTokenizerFast

folder = Path(sys.argv[1])
encoder, checkpoints = folder / "encoder", folder / "checkpoints"
for path in (encoder, checkpoints):
    path.mkdir(parents=True, exist_ok=True)
special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
tokenizer = Tokenizer(models.Unigram())
tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
text = [
    "Person 1 was born in Avel .",
    "Человек 1 родился в Авеле.",
    "The capital is Paris",
    "Столица Париж",
] * 20
tokenizer.train_from_iterator(
    text, trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>")
)
tokenizer.post_processor = TemplateProcessing(
    single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
)
names = dict(
    zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), special, strict=True)
)
XLMRobertaTokenizerFast(
    tokenizer_object=tokenizer, cls_token="<s>", sep_token="</s>", **names
).save_pretrained(encoder)
size = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 514,
}
torch.manual_seed(0)
XLMRobertaModel(
    XLMRobertaConfig(vocab_size=320, pad_token_id=1, type_vocab_size=1, **size)
).save_pretrained(encoder)

model = ReferencelessRegression(
    pretrained_model=str(encoder),
    encoder_model="XLM-RoBERTa",
    layer_transformation="softmax",
    hidden_sizes=[16],
    load_pretrained_weights=False,
    local_files_only=True,
)
made = {"state_dict": model.state_dict(), "hyper_parameters": dict(model.hparams)}
torch.save(
    made
    | {"pytorch-lightning_version": pytorch_lightning.__version__, "epoch": 0, "global_step": 0},
    checkpoints / "model.ckpt",
)
(folder / "hparams.yaml").write_text(
    yaml.safe_dump({"class_identifier": "referenceless_regression_metric"}), encoding="utf-8"
)
