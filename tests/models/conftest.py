import pytest
import torch

from models.config import ModelConfig
from models.initialization import initialise
from models.transformer import CausalLM


@pytest.fixture(autouse=True)
def _one_thread():
    """Matrices this small gain nothing from threads, and lose much where other tests run beside them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def config() -> ModelConfig:
    """Two query heads to a key head, and no setting at the default of transformers."""
    return ModelConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=56,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=48,
        rms_norm_eps=1e-4,
        rope_theta=500.0,
        initializer_range=0.2,
        bos_token_id=3,
        eos_token_id=4,
        pad_token_id=0,
    )


@pytest.fixture
def model(config: ModelConfig) -> CausalLM:
    return filled(config)


@pytest.fixture
def make():
    """Build a language model of any configuration, with weights that are all different."""
    return filled


def filled(config: ModelConfig, seed: int = 1) -> CausalLM:
    model = CausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    initialise(model, config, generator)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:  # all ones would hide a norm that forgets its weight
                parameter.uniform_(0.5, 1.5, generator=generator)
    return model
