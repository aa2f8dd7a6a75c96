"""Origins: recorded without changing what the program sees."""

import torch
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

import samedevice


def test_watching_leaves_what_c_allocates_where_it_belongs():
    with samedevice.simulate("cuda"), samedevice.watch():
        packed = pack_sequence([torch.ones(3, 2).cuda(), torch.ones(2, 2).cuda()])
        padded, lengths = pad_packed_sequence(packed)  # C++ makes it with at::full, in the device of the data
        assert (str(padded.device), str(lengths.device)) == ("cuda:0", "cpu")
