"""The training run itself, on Hugging Face's Trainer: several GPUs through ``accelerate launch``, checkpoints by tokens."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_callback import PrinterCallback
from transformers.trainer_utils import get_last_checkpoint

from fluent_mlama.console import note
from fluent_mlama.zhoblimp.training.corpus import Blocks
from fluent_mlama.zhoblimp.training.sizes import checkpoint_name


@dataclass(frozen=True)
class Recipe:
    """batch: stretches a device and forward; accumulate: forwards a step. save_every: steps between states to resume from."""

    batch: int
    accumulate: int
    learning_rate: float
    seed: int
    save_every: int
    dtype: str


class Checkpoints(TrainerCallback):
    """Writes the model as it is after each wanted step, loadable by itself, whole or not at all."""

    def __init__(
        self, folder: Path, steps: Mapping[int, int], tokenizer: PreTrainedTokenizerFast
    ) -> None:
        self.folder, self.steps, self.tokenizer = folder, steps, tokenizer

    def on_step_end(
        self, args: TrainingArguments, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        """Called by the Trainer after each optimiser step."""
        if state.global_step in self.steps and state.is_world_process_zero:
            final = self.folder / checkpoint_name(self.steps[state.global_step])
            unfinished = final.with_name(f".{final.name}.partial")
            shutil.rmtree(unfinished, ignore_errors=True)
            inner = getattr(model, "module", model)
            inner.save_pretrained(unfinished)
            self.tokenizer.save_pretrained(unfinished)
            shutil.rmtree(final, ignore_errors=True)
            unfinished.rename(final)
            note(f"checkpoint {final.name}")


class ResumingTrainer(Trainer):
    """A Trainer whose model comes with its weights.

    transformers 5.24 saves GPT-NeoX's head under the name ``embed_out`` and its Trainer looks for ``lm_head``, so that a
    resumed run would go on with a fresh head; ``from_pretrained`` knows both names.
    """

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Nothing to do: ``train`` below has loaded the weights. Optimiser, schedule and data order are the Trainer's."""


def train(
    config: GPTNeoXConfig,
    blocks: Blocks,
    tokenizer: PreTrainedTokenizerFast,
    out: Path,
    steps: Mapping[int, int],
    recipe: Recipe,
) -> float:
    """Train until the last of ``steps``, going on from the last kept state if there is one. The final training loss."""
    state_folder = out / "state"
    on_gpu = torch.cuda.is_available()
    bf16 = recipe.dtype == "bfloat16" or (
        recipe.dtype == "auto" and on_gpu and torch.cuda.is_bf16_supported()
    )
    torch.manual_seed(recipe.seed)
    last = get_last_checkpoint(str(state_folder)) if state_folder.is_dir() else None
    model = (
        GPTNeoXForCausalLM.from_pretrained(last, use_safetensors=True)
        if last
        else GPTNeoXForCausalLM(config)
    )
    arguments = TrainingArguments(
        output_dir=str(state_folder),
        max_steps=max(steps),
        per_device_train_batch_size=recipe.batch,
        gradient_accumulation_steps=recipe.accumulate,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": 0.1},
        warmup_steps=max(1, max(steps) // 100),
        adam_beta2=0.95,
        weight_decay=0.1,
        max_grad_norm=1.0,
        bf16=bf16,
        use_cpu=not on_gpu,
        save_strategy="steps",
        save_steps=recipe.save_every,
        save_total_limit=2,
        logging_steps=max(1, max(steps) // 50),
        report_to=[],
        disable_tqdm=not sys.stderr.isatty(),
        seed=recipe.seed,
        dataloader_drop_last=True,
        remove_unused_columns=False,
    )
    trainer = ResumingTrainer(
        model=model,
        args=arguments,
        train_dataset=blocks,
        callbacks=[Checkpoints(out, steps, tokenizer)],
    )
    trainer.remove_callback(PrinterCallback)
    if last:
        note(f"going on from {Path(last).name.replace('checkpoint-', 'step ')} of {max(steps)}")
    return float(trainer.train(resume_from_checkpoint=last).training_loss)
