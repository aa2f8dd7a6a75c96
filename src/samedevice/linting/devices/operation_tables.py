"""What each operation demands of the devices of its operands, by PyTorch's names.

Source: device_check in native_functions.yaml and the uses of TensorIterator, torch 2.13; unlisted operations demand nothing
here, so that what is not known stays silent.
"""

from __future__ import annotations

__all__ = ["ELEMENTWISE", "FACTORIES", "LIKE", "PARAMETERLESS", "STRICT", "WEIGHTED", "WEIGHTED_LOSSES"]

STRICT = frozenset(
    """
    cat concat concatenate stack hstack vstack dstack column_stack matmul mm bmm mv dot vdot inner outer ger addmm addmv
    addbmm baddbmm addr einsum tensordot bilinear linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d embedding embedding_bag batch_norm layer_norm group_norm instance_norm rms_norm cross gather scatter
    scatter_add scatter_reduce index_select index_add index_copy index_reduce masked_select masked_scatter masked_fill take
    take_along_dim bincount isin cdist grid_sample searchsorted bucketize logaddexp logaddexp2 clamp clamp_min clamp_max
    nextafter gcd lcm mse_loss smooth_l1_loss huber_loss nll_loss cross_entropy binary_cross_entropy kl_div
    scaled_dot_product_attention repeat_interleave equal polar complex meshgrid stft istft prelu multi_margin_loss
    cosine_similarity pairwise_distance cosine_embedding_loss margin_ranking_loss triplet_margin_loss soft_margin_loss
    kron block_diag cartesian_prod chain_matmul addcdiv lstsq solve cholesky_solve triangular_solve put index_fill
    multi_head_attention_forward
    """.split()
)
"""All tensors on one device, those without dimensions too."""

ELEMENTWISE = frozenset(
    """
    add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow float_power atan2 hypot copysign
    xlogy maximum minimum fmax fmin max min eq ne lt le gt ge equal_to less greater bitwise_and bitwise_or bitwise_xor
    logical_and logical_or logical_xor where lerp addcmul l1_loss dist isclose allclose rsub binary_cross_entropy_with_logits
    """.split()
)
"""Tensors without dimensions on the CPU may join the others."""

FACTORIES = frozenset(
    """
    zeros ones empty full rand randn randint randperm arange linspace logspace eye tensor scalar_tensor hann_window
    hamming_window bartlett_window blackman_window kaiser_window tril_indices triu_indices empty_strided range normal
    """.split()
)
"""Make a tensor on the default device unless they are given `device=`."""

LIKE = frozenset("zeros_like ones_like empty_like full_like rand_like randn_like randint_like".split())

WEIGHTED = frozenset(
    """
    Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d BatchNorm1d BatchNorm2d BatchNorm3d
    SyncBatchNorm LayerNorm GroupNorm RMSNorm Embedding EmbeddingBag RNN LSTM GRU RNNCell LSTMCell GRUCell
    MultiheadAttention Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer
    PReLU LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
    """.split()
)
"""Modules of torch.nn with parameters."""

WEIGHTED_LOSSES = frozenset("CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss MultiMarginLoss MultiLabelSoftMarginLoss".split())
"""Losses that keep a `weight` or `pos_weight`, as a buffer."""

RECURRENT = frozenset("RNN LSTM GRU RNNCell LSTMCell GRUCell".split())

PARAMETERLESS = frozenset(
    """
    ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softmax LogSoftmax Softplus Softsign Hardtanh Hardswish
    Hardsigmoid Softmax2d Softmin Threshold GLU Dropout Dropout1d Dropout2d Dropout3d AlphaDropout Identity Flatten Unflatten
    MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d Upsample PixelShuffle PixelUnshuffle ZeroPad2d ReflectionPad1d
    ReflectionPad2d ReplicationPad2d ConstantPad1d ConstantPad2d InstanceNorm1d InstanceNorm2d InstanceNorm3d Fold Unfold
    LocalResponseNorm
    """.split()
)
"""Modules of torch.nn without parameters that take one tensor."""
