"""`explain` on error lines of all ages, in the forms in which people paste them; what is no device fault is None."""

import textwrap

import pytest

from samedevice.explaining.explain import explain

SAME = "Expected all tensors to be on the same device, but "
GPU = "but expected it to be on GPU (while checking arguments for "

# (error line, cause that the line alone settles)
LINES = [
    (SAME + "found at least two devices, cuda:0 and cpu!", "other"),
    (SAME + "found at least two devices, cuda:2 and cuda:0!", "other"),
    (SAME + "found at least two devices, mps:0 and cpu!", "other"),
    (SAME + "found at least two devices, cpu and cuda:0! (when checking arugment for argument index in method "
     "wrapper_index_select)", "other"),
    (SAME + "found at least two devices, cuda:0 and cpu! (when checking argument for argument mat2 in method "
     "wrapper_CUDA_mm)", "other"),
    (SAME + "found at least two devices, cuda:1 and cuda:0! (when checking argument for argument tensors in method "
     "wrapper_CUDA_cat)", "other"),
    (SAME + "found at least two devices, cuda:0 and cuda:1! (when checking argument for argument index in method "
     "wrapper_CUDA_scatter__value)", "other"),
    (SAME + "got index is on cpu, different from other tensors on cuda:0 (when checking argument in method "
     "wrapper_CUDA__index_select)", "other"),
    (SAME + "got weight is on cpu, different from other tensors on cuda:0 (when checking argument in method "
     "wrapper_CUDA___slow_conv2d_forward)", "other"),
    ("Expected object of backend CUDA but got backend CPU for argument #2 'mat2'", "other"),
    ("Expected object of backend CPU but got backend CUDA for argument #3 'index'", "other"),
    ("Expected object of backend CUDA but got backend CPU for sequence element 1 in sequence argument at position #1 "
     "'tensors'", "other"),
    ("Expected object of device type cuda but got device type cpu for argument #3 'index' in call to "
     "_th_index_select", "other"),
    ("Expected object of device type cuda but got device type cpu for argument #1 'self' in call to _th_mm", "other"),
    ("Expected object of type torch.cuda.FloatTensor but found type torch.FloatTensor for argument #2 'weight'",
     "other"),
    ("Expected a Tensor of type torch.FloatTensor but found a type torch.cuda.FloatTensor for sequence element 1 in "
     "sequence argument at position #1 'tensors'", "other"),
    ("expected device cuda:0 but got device cpu", "other"),
    ("expected device cpu but got device cuda:0", "other"),
    ("expected backend CUDA and dtype Float but got backend CPU and dtype Float", "other"),
    ("Tensor for argument #3 'mat2' is on CPU, " + GPU + "addmm)", "other"),
    ("Tensor for 'out' is on CPU, Tensor for argument #1 'self' is on CPU, but expected them to be on GPU (while "
     "checking arguments for addmm)", "other"),
    ("Expected tensor for argument #1 'input' to have the same device as tensor for argument #2 'weight'; but device 1 "
     "does not equal 0 (while checking arguments for cudnn_convolution)", "other"),
    ("Expected tensor for 'out' to have the same device as tensor for argument #2 'mat1'; but device 1 does not equal "
     "0 (while checking arguments for addmm)", "other"),
    ("Expected tensor to have CPU Backend, but got tensor with CUDA Backend (while checking arguments for "
     "embedding_bag)", "other"),
    ("Input, output and indices must be on the current device", "other"),
    ("arguments are located on different GPUs at /pytorch/aten/src/THC/generic/THCTensorMathPointwise.cu:314",
     "other"),
    ("All input tensors must be on the same device. Received cpu and cuda:0", "other"),
    ("torch.cat(): all input tensors must be on the same device. Received cuda:0 and cpu", "other"),
    ("expected condition, x and y to be on the same device, but condition is on cpu and x and y are on cuda:0 and "
     "cuda:0 respectively", "other"),
    ("Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same", "other"),
    ("Input type (CUDAFloatType) and weight type (CPUFloatType) should be the same", "other"),
    ("Input type (MPSFloatType) and weight type (torch.FloatTensor) should be the same", "other"),
    ("Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a "
     "MKLDNN tensor and weight is a dense tensor", "other"),
    ("Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu",
     "hidden-state"),
    ("Input and parameter tensors are not at the same device, found input tensor at cpu and parameter tensor at cuda:0",
     "other"),
    ("indices should be either on cpu or on the same device as the indexed tensor (cpu)", "index-device"),
    ("expected self and mask to be on the same device, but got mask on cpu and self on cuda:0", "other"),
    ("'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor", "lengths-must-be-cpu"),
    ("'lengths' argument should be a 1D CPU int64 tensor", "lengths-must-be-cpu"),
    ("Expected a 'cuda' device type for generator but found 'cpu'", "generator-device"),
    ("Expected a 'cuda:0' generator device but found 'cpu'", "generator-device"),
    ("RNG state must be a torch.ByteTensor", "generator-device"),
    ("expected a torch.ByteTensor, but got torch.cuda.ByteTensor", "generator-device"),
    ("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
     "numpy-on-cuda"),
    ("can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.", "numpy-on-cuda"),
    ("can't convert mps:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
     "numpy-on-cuda"),
    ("module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: "
     "cuda:1", "dataparallel-misplaced"),
    ("all tensors must be on devices[0]", "dataparallel-misplaced"),
    ("Broadcast function not implemented for CPU tensors", "dataparallel-misplaced"),
    ("Gather function not implemented for CPU tensors", "dataparallel-misplaced"),
    ("Invalid device id", "dataparallel-misplaced"),
    ("DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate "
     "in {'cpu', 'cuda'}.", "split-model"),
    ("DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU "
     "modules or CPU modules, but got device_ids [0], output_device None, and module parameters "
     "{device(type='cpu')}.", "other"),
    ("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on "
     "a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the "
     "CPU.", "checkpoint-map-location"),
    ("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on "
     "a CPU-only machine, please use torch.load with map_location='cpu' to map your storages to the CPU.",
     "checkpoint-map-location"),
    ("Attempting to deserialize object on CUDA device 2 but torch.cuda.device_count() is 1. Please use torch.load with "
     "map_location to map your storages to an existing device.", "checkpoint-map-location"),
    ("If capturable=True, params and state_steps must be CUDA tensors.", "optimizer-state"),
    ("If capturable=False, state_steps should not be CUDA tensors.", "optimizer-state"),
    ("can't optimize a non-leaf Tensor", "other"),
    ("No inf checks were recorded for this optimizer.", "other"),
    ("attempting to assign a gradient with device type 'cpu' to a tensor with device type 'cuda'. Please ensure that "
     "the gradient and the tensor are on the same device", "other"),
    ("Function AddBackward0 returned an invalid gradient at index 1 - expected type torch.FloatTensor but got "
     "torch.cuda.FloatTensor", "other"),
    ("Function MulBackward0 returned an invalid gradient at index 0 - expected device cuda:0 but got cpu", "other"),
    ("CUDA error: invalid device ordinal", "other"),
    ("cuda runtime error (10) : invalid device ordinal at torch/csrc/cuda/Module.cpp:32", "other"),
    ("Cannot access accelerator device when none is available.", "other"),
    ("Torch not compiled with CUDA enabled", "other"),
    ("type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled.", "other"),
    ("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
     "method", "other"),
    ("Placeholder storage has not been allocated on MPS device!", "other"),
    ("cannot pin 'torch.cuda.LongTensor' only dense CPU tensors can be pinned", "other"),
    ("Unhandled FakeTensor Device Propagation for aten.add.Tensor, found two different devices cpu, cuda:0", "other"),
    ("Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)", "other"),
    ("dets must be a CUDA tensor", "other"),
    ("No backend type associated with device type cpu", "other"),
    ("cannot assign 'torch.cuda.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)", "other"),
    ("Encountered different devices in metric calculation (see stacktrace for details). This could be due to the "
     "metric class not being on the same device as input.", "metric-state"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "cause"), LINES, ids=[line[:60] for line, _ in LINES])
def test_the_line_alone(line, cause):
    finding = explain(f"RuntimeError: {line}\n")
    assert finding is not None
    assert finding.cause == cause
    assert finding.raised.message in line
    assert str(finding)


NO_DEVICE_FAULTS = [
    "mat1 and mat2 shapes cannot be multiplied (4x3 and 4x3)",
    "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total capacity; 6.10 GiB already allocated)",
    "CUDA error: device-side assert triggered",
    "CUDA error: no kernel image is available for execution on the device",
    "Expected object of scalar type Long but got scalar type Float for argument #2 'target' in call to _thnn_nll_loss",
    "Expected object of type torch.LongTensor but found type torch.FloatTensor for argument #3 'index'",
    "Expected object of type torch.cuda.LongTensor but found type torch.cuda.FloatTensor for argument #2 'target'",
    "expected backend CPU and dtype Float but got backend CPU and dtype Long",
    "Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same",
    "Input type (double) and bias type (float) should be the same",
    "Function MulBackward0 returned an invalid gradient at index 0 - expected type torch.cuda.FloatTensor but got "
    "torch.cuda.HalfTensor",
    "expected scalar type Half but found Float",
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    "element 0 of tensors does not require grad and does not have a grad_fn",
    "Trying to backward through the graph a second time",
    'Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "fc.weight"',
    "index 5 is out of bounds for dimension 0 with size 3",
    "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
    "DataLoader worker (pid 7) is killed by signal: Killed.",
    "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)",
    "all tensors must be 2-D",
]


@pytest.mark.parametrize("line", NO_DEVICE_FAULTS)
def test_other_errors_are_left_alone(line):
    assert explain(f'  File "train.py", line 3, in <module>\n    loss = step(x)\nRuntimeError: {line}') is None
    assert explain(RuntimeError(line)) is None


ERROR = "RuntimeError: " + SAME + "found at least two devices, cuda:0 and cpu!"
FRAMES = """Traceback (most recent call last):
  File "{root}train.py", line 12, in <module>
    main()
  File "{root}net.py", line 31, in forward
    return x + self.pe
"""
SITE = """  File "{lib}torch{sep}nn{sep}modules{sep}module.py", line 1553, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
"""


def _prefixed(prefix: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in (FRAMES.format(root="/home/me/proj/") + ERROR).splitlines())


FORMS = {
    "windows": FRAMES.format(root="D:\\proj (1)\\net\\") + ERROR,
    "a windows library below": FRAMES.format(root="D:\\proj\\")
    + SITE.format(lib="C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python37\\lib\\site-packages\\", sep="\\")
    + ERROR,
    "an embedded python": FRAMES.format(root="C:\\ComfyUI\\custom_nodes\\")
    + SITE.format(lib="C:\\ComfyUI\\python_embeded\\Lib\\site-packages\\", sep="\\")
    + ERROR,
    "conda below": FRAMES.format(root="/data/")
    + SITE.format(lib="/opt/conda/envs/a/lib/python3.8/site-packages/", sep="/")
    + ERROR,
    "torchrun": _prefixed("[rank3]: "),
    "torchrun's default tee": _prefixed("[default0]:"),
    "a logger's time before each line": _prefixed("2024-05-01 12:00:00,123 - root - ERROR - "),
    "a log of a container": _prefixed("trainer-1  | "),
    "ray": _prefixed("(TrainWorker pid=4242, ip=10.0.0.7) "),
    "a quotation": _prefixed("> > "),
    "a list item": textwrap.indent(FRAMES.format(root="/home/me/proj/") + ERROR, "        "),
    "a replica": "RuntimeError: Caught RuntimeError in replica 1 on device 1.\nOriginal "
    + FRAMES.format(root="/home/me/proj/")
    + ERROR,
    "a worker": "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal "
    + FRAMES.format(root="/home/me/proj/")
    + ERROR,
    "pytest": "    def forward(self, x):\n>       return x + self.pe\nE       "
    + ERROR
    + "\n\nnet.py:31: RuntimeError",
    "loguru": '2024-05-01 | ERROR | __main__:12 - failed\n\n> File "/home/me/proj/net.py", line 31, in forward\n'
    "    return x + self.pe\n           │   └ <Net>\n           └ tensor\n\n" + ERROR,
    "truncated": '  File "/home/me/proj/net.py", line 31, in forward\n' + ERROR,
    "cut in the middle": 'line 3, in x\n  File "/home/me/proj/net.py", line 31, in forward\n    retur\n' + ERROR,
    "crlf": (FRAMES.format(root="C:\\proj\\") + ERROR).replace("\n", "\r\n"),
    "ansi colours": FRAMES.format(root="/home/me/proj/").replace("line 31", "line \x1b[35m31\x1b[0m") + ERROR,
    "ipython of old": "RuntimeError  Traceback (most recent call last)\n<ipython-input-12-bb8ae99f70ba> in <module>\n"
    "----> 1 main()\n\n~\\Documents\\net.py in forward(self, x)\n     30     def forward(self, x):\n"
    "---> 31         return x + self.pe\n     32 \n\n" + ERROR,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_place_in_every_form(form):
    finding = explain(FORMS[form])
    assert finding is not None
    location = finding.location
    assert location is not None
    assert location.file.replace("\\", "/").rpartition("/")[2] == "net.py"
    assert location.line == 31


@pytest.mark.parametrize(
    "text",
    [
        f"Cell In[3], line 2\n      1 y = 1\n----> 2 out = x + y\n\n{ERROR}",
        f"Input In [3], in <cell line: 2>()\n      1 y = 1\n----> 2 out = x + y\n\n{ERROR}",
        f"<ipython-input-3-0f1c2d3e4f50> in <module>\n      1 y = 1\n----> 2 out = x + y\n\n{ERROR}",
        f"<ipython-input-3-0f1c2d3e4f50> in <module>()\n      1 y = 1\n----> 2 out = x + y\n\n{ERROR}",
        f"/tmp/ipykernel_42/123456.py in <module>\n      1 y = 1\n----> 2 out = x + y\n\n{ERROR}",
    ],
)
def test_cells_of_notebooks(text):
    location = explain(text).location
    assert (location.line, location.source) == (2, "out = x + y")
