"""What a pasted line of code and the message settle together, without the file; and what they leave open."""

import ast

import pytest

from samedevice.explaining.explain import explain

PACKAGES = "/home/me/env/lib/python3.10/site-packages/"
CALL = ("nn/modules/module.py", "return self._call_impl(*args, **kwargs)")
LOSS = (CALL, ("nn/modules/loss.py", "return F.cross_entropy(input, target, weight=self.weight,"))
LINEAR = (CALL, ("nn/modules/linear.py", "return F.linear(input, self.weight, self.bias)"))
CONV = (CALL, ("nn/modules/conv.py", "return self._conv_forward(input, self.weight, self.bias)"))
EMBEDDING = (CALL, ("nn/modules/sparse.py", "return F.embedding("))
ADAM = (
    ("optim/lr_scheduler.py", "return wrapped(*args, **kwargs)"),
    ("optim/adam.py", "exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)"),
)
FUSED = (("optim/adamw.py", "torch._fused_adamw_("),)
SCALER = (("amp/grad_scaler.py", "retval = optimizer.step(*args, **kwargs)"), *ADAM)
LSTM = (CALL, ("nn/modules/rnn.py", "result = _VF.lstm(input, hx, self._flat_weights, self.bias, self.num_layers,"))
GRU = (CALL, ("nn/modules/rnn.py", "result = _VF.gru(input, hx, self._flat_weights, self.bias, self.num_layers,"))


def same(first, second, argument=None, method=None):
    text = f"RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {first} and"
    named = f" (when checking argument for argument {argument} in method wrapper_CUDA_{method})" if argument else ""
    return f"{text} {second}!{named}"


def pasted(code, message, below=()):
    frames = [f'  File "/home/me/proj/train.py", line 41, in step\n    {code}\n']
    frames += [
        f'  File "{PACKAGES}{file[1:] if file.startswith("~") else f"torch/{file}"}", line 9, in forward\n    {line}\n'
        for file, line in below
    ]
    return f"Traceback (most recent call last):\n{''.join(frames)}{message}\n"


HIDDEN = (
    "RuntimeError: Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor "
    "at cpu"
)
DDP = (
    "ValueError: DistributedDataParallel device_ids and output_device arguments only work with single-device/"
    "multiple-device GPU modules or CPU modules, but got device_ids [0], output_device 0, and module parameters {}."
)
INDICES = "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor ({})"
NUMPY = (
    "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
    "first."
)
LENGTHS = "RuntimeError: 'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"
LOAD = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you "
    "are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
    "storages to the CPU."
)
NLL = "nll_loss_forward"
MASK = "RuntimeError: expected self and mask to be on the same device, but got mask on cpu and self on cuda:0"
NEW = (
    "RuntimeError: Expected all tensors to be on the same device, but got target is on cpu, different from other "
    "tensors on cuda:0 (when checking argument in method wrapper_CUDA_nll_loss_forward)"
)
TARGET = "RuntimeError: Expected object of device type cuda but got device type cpu for argument #2 'target' in call to"
BACKEND = "RuntimeError: Expected object of backend CUDA but got backend CPU for argument #2 'target'"
WEIGHT = "RuntimeError: Expected object of type torch.FloatTensor but found type torch.cuda.FloatTensor for argument #2"
TYPES = "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same"
DP = (
    "RuntimeError: module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them "
    "on device: cpu"
)
VALUE = "RuntimeError: expected device cuda:0 but got device cpu for value tensor"

SETTLED = [
    # A loss: what it is given, and what it holds.
    ("loss = criterion(outputs, labels)", same("cuda:0", "cpu", "target", NLL), LOSS,
     "SD101", "labels", "loss = criterion(outputs, labels.to(outputs.device))"),
    ("loss = criterion(outputs, labels)", same("cuda:0", "cpu", "target", NLL), (),
     "SD101", "labels", "loss = criterion(outputs, labels.to(outputs.device))"),
    ("loss = criterion(outputs, labels)", same("cpu", "cuda:0", "target", NLL), LOSS,
     "SD101", "outputs", "loss = criterion(outputs.to(labels.device), labels)"),
    ("loss = crit(outputs, labels.view(-1))", f"{TARGET} _thnn_nll_loss_forward", LOSS,
     "SD101", "labels.view(-1)", "loss = crit(outputs, labels.view(-1).to(outputs.device))"),
    ("loss = criterion(outputs, labels)", BACKEND, LOSS,
     "SD101", "labels", "loss = criterion(outputs, labels.to(outputs.device))"),
    ("return F.cross_entropy(logits, target=y)", NEW, (),
     "SD101", "y", "return F.cross_entropy(logits, target=y.to(logits.device))"),
    ("loss = criterion(outputs, labels)", same("cuda:0", "cpu", "weight", NLL), LOSS,
     "SD122", "criterion", "criterion.to(outputs.device)  (once, before line 41)"),
    ("loss = F.cross_entropy(out, y, weight=w)", same("cuda:0", "cpu", "weight", NLL), (),
     "SD101", "w", "loss = F.cross_entropy(out, y, weight=w.to(out.device))"),
    # An optimizer's state.
    ("optimizer.step()", same("cuda:0", "cpu"), ADAM, "SD201", "optimizer.state",
     "optimizer.load_state_dict(optimizer.state_dict())  (once, before line 41)"),
    ("self.scaler.step(self.opt)", same("cuda:0", "cpu"), SCALER, "SD201", "self.opt.state",
     "self.opt.load_state_dict(self.opt.state_dict())  (once, before line 41)"),
    ("opt.step()", same("cuda:0", "cpu", "state_steps", "__fused_adamw_"), FUSED,
     "SD201", "opt.state", "opt.load_state_dict(opt.state_dict())  (once, before line 41)"),
    # Devices written in the line.
    ("x = x + self.pos_embed.cuda()", same("cuda:1", "cuda:0"), (),
     "SD107", "self.pos_embed.cuda()", "x = x + self.pos_embed.to(x.device)"),
    ("x = x + self.pe.cuda()", same("cuda:0", "cpu"), (), "SD101", "x", "x = x.cuda() + self.pe.cuda()"),
    ("x += torch.zeros(3, 4)", same("cuda:0", "cpu"), (),
     "SD106", "torch.zeros(3, 4)", "x += torch.zeros(3, 4, device=x.device)"),
    ("hits = (pred == y.cpu()).sum()", same("cuda:0", "cpu"), (),
     "SD107", "y.cpu()", "hits = (pred == y.to(pred.device)).sum()"),
    ("img = (fake.detach().cpu() + real) / 2", same("cuda:0", "cpu"), (),
     "SD107", "fake.detach().cpu()", "img = (fake.detach().to(real.device) + real) / 2"),
    # Layers.
    ("pred = net(images.to(d))[0]", same("cuda:0", "cpu", "mat1", "addmm"), LINEAR,
     "SD101", "images.to(d)", "pred = net(images.to(net.weight.device))[0]"),
    ("for i, out in enumerate(net(x)):", same("cuda:0", "cpu", "mat1", "addmm"), LINEAR,
     "SD101", "x", "for i, out in enumerate(net(x.to(net.weight.device))):"),
    ("if loss_fn(out, y) > 3:", same("cuda:0", "cpu", "target", NLL), LOSS,
     "SD101", "y", "if loss_fn(out, y.to(out.device)) > 3:"),
    ("return self.relu(self.bn1(self.conv1(x)))", f"{WEIGHT} 'weight'", CONV,
     "SD101", "x", "return self.relu(self.bn1(self.conv1(x.to(self.conv1.weight.device))))"),
    ("o = self.gru(self.embedding(x), h)", HIDDEN, GRU,
     "SD120", "h", "o = self.gru(self.embedding(x), h.to(next(self.gru.parameters()).device))"),
    ("x = F.relu(self.conv1(x))", f"{WEIGHT} 'weight'", CONV,
     "SD101", "x", "x = F.relu(self.conv1(x.to(self.conv1.weight.device)))"),
    ("out = model(x)", TYPES, CONV, "SD102", "model", "model.to(x.device)  (once, before line 41)"),
    ("return self.fc(x)", same("cuda:0", "cpu", "mat1", "addmm"), LINEAR,
     "SD101", "x", "return self.fc(x.to(self.fc.weight.device))"),
    ("e = net(tokens)", same("cuda:0", "cpu", "index", "_index_select"), (CALL,),
     "SD101", "tokens", "e = net(tokens.to(next(net.parameters()).device))"),
    ("out, h = self.lstm(x, (h0, c0))", HIDDEN, LSTM,
     "SD120", "(h0, c0)", "out, h = self.lstm(x, (h0.to(x.device), c0.to(x.device)))"),
    ("out, h = self.lstm(x, h)", HIDDEN, LSTM,
     "SD120", "h", "out, h = self.lstm(x, tuple(part.to(x.device) for part in h))"),
    ("out, h = self.gru(x, h)", HIDDEN, GRU, "SD120", "h", "out, h = self.gru(x, h.to(x.device))"),
    # Wrappers.
    ("model = DDP(model, device_ids=[rank])", DDP.format("{device(type='cpu')}"), (),
     "SD116", "model", "model = DDP(model.to(rank), device_ids=[rank])"),
    ("out = model(x)", DP, (CALL,), "SD116", "model", 'model.to("cuda:0")  (once, before line 41)'),
    # Functions and indexing.
    ("boxes = boxes[keep]", INDICES.format("cpu"), (), "SD109", "keep", "boxes = boxes[keep.cpu()]"),
    ("a = self.alphas[t][:, None]", INDICES.format("cpu"), (), "SD109", "t", "a = self.alphas[t.cpu()][:, None]"),
    ("x = x[:, m > 0]", INDICES.format("cuda:0"), (), "SD109", "m > 0", "x = x[:, (m > 0).to(x.device)]"),
    ("h[mask] = v", VALUE, (), "SD101", "v", "h[mask] = v.to(h.device)"),
    ("s = s.masked_fill(m == 0, -1e9)", MASK, (),
     "SD101", "m == 0", "s = s.masked_fill((m == 0).to(s.device), -1e9)"),
    ("q = net_q.gather(1, a)", same("cuda:0", "cpu", "index", "gather"), (),
     "SD109", "a", "q = net_q.gather(1, a.to(net_q.device))"),
    ("h = torch.mm(x, self.w)", same("cuda:0", "cpu", "mat2", "mm"), (),
     "SD900", "self.w", "h = torch.mm(x, self.w.to(x.device))"),
    ("x = torch.cat((cls, x), dim=1)", same("cuda:0", "cpu", "tensors", "cat"), (),
     "SD101", "x", "x = torch.cat((cls, x.to(cls.device)), dim=1)"),
    # Leaving the device, packing, loading.
    ("pred = out.detach().numpy()", NUMPY, (), "SD112", "out", "pred = out.detach().cpu().numpy()"),
    ("plt.imshow(np.array(img.squeeze()))", NUMPY, (("_tensor.py", "return self.numpy()"),),
     "SD112", "img", "plt.imshow(np.array(img.squeeze().detach().cpu()))"),
    ("p = pack_padded_sequence(emb, n, batch_first=True)", LENGTHS, (("nn/utils/rnn.py", "_VF.x"),),
     "SD110", "n", "p = pack_padded_sequence(emb, n.cpu(), batch_first=True)"),
    ("state = torch.load(path)", LOAD, (("serialization.py", "raise RuntimeError("),),
     "SD113", None, 'state = torch.load(path, map_location="cpu")'),
]  # fmt: skip


@pytest.mark.parametrize(("code", "message", "below", "cause", "name", "mend"), SETTLED)
def test_what_the_line_and_the_message_settle(code, message, below, cause, name, mend):
    finding = explain(pasted(code, message, below))
    assert (finding.code, finding.culprit.name if finding.culprit else None) == (cause, name)
    assert finding.fix.summary == mend
    assert finding.fix.edits == ()  # the file is elsewhere
    ast.parse(mend.partition("  (")[0] + (" pass" if mend.endswith(":") else ""))
    assert f"Mend: {mend}" in " ".join(str(finding).split()) or "  (" in mend


OPEN = [
    ("x = x + self.pe", same("cuda:0", "cpu"), ()),
    ("loss = mse(out, y)", same("cuda:0", "cpu"), (CALL, ("nn/modules/loss.py", "return F.mse_loss(input, target)"))),
    ("loss = a(p, q) + b(r, s)", same("cuda:0", "cpu", "target", NLL), LOSS),
    ("optimizer.step()", same("cuda:0", "cpu"), (("optim/sgd.py", "d_p = d_p.add(param, alpha=weight_decay)"),)),
    ("x = torch.cat((a, b, c))", same("cuda:0", "cpu", "tensors", "cat"), ()),
    (
        "out = self.net(x)",
        same("cuda:0", "cuda:1", "mat1", "addmm"),
        (("nn/modules/container.py", "module(i)"), *LINEAR),
    ),
    ("x = torch.cat(parts)", same("cuda:0", "cpu", "tensors", "cat"), ()),
    ("x = a * b + torch.zeros(3)", same("cuda:0", "cpu"), ()),
    ("return self.conv2(self.conv1(x))", f"{WEIGHT} 'weight'", CONV),
    ("return self.second(self.first(x))", f"{WEIGHT} 'weight'", CONV),
    ("z = mu + std * torch.randn(std.size())", same("cuda:0", "cpu"), ()),
    ("x = x + torch.zeros(())", same("cuda:0", "cpu"), ()),
    ("x = where(m, a, b) + torch.zeros(3)", same("cuda:0", "cpu"), ()),
    ("x = torch.where(m, a, b) + torch.zeros(3)", same("cuda:0", "cpu"), ()),
    ("x = x.cuda() + y.cuda()", same("cuda:1", "cuda:0"), ()),
    ("x = x.to('cuda:1') + y", same("cuda:0", "cuda:1"), ()),
    ("h = x @ self.w", same("cuda:0", "cpu", "mat2", "mm"), ()),
    ("out = pipeline(x)", same("cuda:0", "cpu", "tensors", "cat"), (("~other/net.py", "torch.cat((a, b))"),)),
    ("out = helper(a, b)", same("cuda:0", "cpu", "target", NLL), (("~other/net.py", "x"), *LOSS)),
]


@pytest.mark.parametrize(("code", "message", "below"), OPEN)
def test_what_is_not_certain_is_not_said(code, message, below):
    finding = explain(pasted(code, message, below))
    assert (finding.code, finding.culprit, finding.fix) == ("SD900", None, None)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("a, b = a[i], b[j]", INDICES.format("cpu")),
        ("x = np.dot(a.numpy(), b.numpy())", NUMPY),
        ("plt.plot(losses)", NUMPY),
        ("mean = np.array(losses)", NUMPY),
        ("state = torch.load(path, map_location=device)", LOAD),
        ("state = load(path)", LOAD),
    ],
)
def test_a_cause_without_a_name_is_mended_in_words(code, message):
    finding = explain(pasted(code, message))
    assert finding.code != "SD900"
    assert finding.culprit is None
    assert finding.fix.summary.partition(" ")[0] in ("bring", "say")


def test_a_module_on_gpus_is_not_said_to_be_on_the_cpu():
    on_two = DDP.format("{device(type='cuda', index=0), device(type='cuda', index=1)}")
    assert explain(pasted("model = DDP(model, device_ids=[rank])", on_two)).code == "SD900"


@pytest.mark.parametrize(
    ("code", "mend"),
    [
        ("out = model.generate(ids, max_length=9)", "out = model.generate(ids.to(model.device), max_length=9)"),
        ("out = model(input_ids=ids)", "out = model(input_ids=ids.to(model.device))"),
        (
            "out = model(**inputs)",
            "out = model(**{key: value.to(model.device) for key, value in inputs.items()})",
        ),
    ],
)
@pytest.mark.parametrize("looked_up", ["input_ids", "position_ids"])
def test_what_a_language_model_is_given(code, mend, looked_up):
    line = f"inputs_embeds = self.embed_tokens({looked_up})"
    below = (("~transformers/models/llama/modeling_llama.py", line), *EMBEDDING)
    finding = explain(pasted(code, same("cuda:0", "cpu", "index", "_index_select"), below))
    fix = finding.fix.summary if finding.fix else None
    assert (fix == mend) == (looked_up == "input_ids")


def test_the_edit_is_exact_where_the_file_is_here(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("def step(outputs, labels):\n    loss = criterion(\n        outputs,\n        labels,\n    )\n")
    text = f'  File "{script}", line 2, in step\n    loss = criterion(\n{same("cuda:0", "cpu", "target", NLL)}'
    (edit,) = explain(text).fix.edits
    assert (edit.file, edit.line, edit.old, edit.new) == (
        str(script), 4, "        labels,", "        labels.to(outputs.device),"
    )  # fmt: skip


@pytest.mark.parametrize("passed_on", ["labels.view(-1)", "labels", "shift_labels"])
def test_the_labels_of_a_language_model(passed_on):
    line = f"loss = loss_fct(logits.view(-1, self.num_labels), {passed_on})"
    below = (("~transformers/models/bert/modeling_bert.py", line), *LOSS)
    finding = explain(pasted("out = model(ids, labels=y)", same("cuda:0", "cpu", "target", NLL), below))
    assert (finding.culprit.name if finding.culprit else None) == (None if "shift" in passed_on else "y")


@pytest.mark.parametrize(
    "shown",
    [
        "    loss = criterion(\n        outputs,\n        labels,\n    )\n",
        "    loss = criterion(\n           ~~~~~~~~~^\n        outputs,\n        ^^^^^^^^\n        labels,\n"
        "    )\n    ^\n",
    ],
)
def test_a_statement_of_several_lines(shown):
    text = f'  File "train.py", line 7, in step\n{shown}{same("cuda:0", "cpu", "target", NLL)}'
    finding = explain(text)
    assert finding.culprit.name == "labels"
    assert ast.parse(finding.fix.summary)
    assert "labels.to(outputs.device)" in finding.fix.summary


def test_a_cell_of_several_lines():
    text = (
        "Cell In[7], line 3\n      2     a = a.to(d)\n----> 3     loss = loss_fn("
        f"\n      4         a,\n      5         b)\n      6     x()\n\n{same('cuda:0', 'cpu', 'target', NLL)}"
    )
    finding = explain(text)
    assert (finding.culprit.name, finding.location.source) == ("b", "loss = loss_fn(a, b)")


def test_a_statement_that_is_cut_off_says_no_name():
    finding = explain(f'  File "t.py", line 7, in step\n    loss = criterion(\n{same("cuda:0", "cpu", "target", NLL)}')
    assert (finding.code, finding.culprit, finding.location.source) == ("SD900", None, "loss = criterion(")
