from torch import Tensor
from torch.nn import functional as F

IGNORED = -100


def token_cross_entropy(logits_BTV: Tensor, targets_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Cross-entropy in nats, summed over the targets where ``mask_BT`` is True; a scalar in fp32.

    ``targets_BT[b, t]`` is the token that ``logits_BTV[b, t]`` predict: the caller has shifted them, once.
    The softmax is taken in fp32 whatever the type of the logits. Without any target the loss is 0.
    """
    return F.cross_entropy(
        logits_BTV.flatten(0, 1).float(),
        targets_BT.masked_fill(~mask_BT, IGNORED).flatten(),
        ignore_index=IGNORED,
        reduction="sum",
    )
