import torch
import torch.nn as nn
import torch.nn.functional as F


class AutoregressiveForecaster(nn.Module):
    def __init__(self, n_series, hidden_size=24):
        super().__init__()
        self.hidden_size = hidden_size
        self.encoder = nn.Linear(n_series, hidden_size)
        self.cell = nn.GRUCell(hidden_size, hidden_size)
        self.readout = nn.Linear(hidden_size, n_series)

    def init_hidden(self, batch_size):
        return self.cell.weight_hh.new_zeros(batch_size, self.hidden_size)

    def forward(self, series, horizon=3):
        hidden = self.init_hidden(series.size(0))
        for t in range(series.size(1)):
            hidden = self.cell(F.relu(self.encoder(series[:, t])), hidden)
        outputs = []
        step = self.readout(hidden)
        for _ in range(horizon):
            outputs.append(step)
            hidden = self.cell(F.relu(self.encoder(step)), hidden)
            step = self.readout(hidden)
        return torch.stack(outputs, dim=1)


def windows(n, length, horizon, n_series):
    t = torch.arange(length + horizon).float()
    phase = torch.rand(n, 1, n_series) * 6.28
    data = torch.sin(0.4 * t.view(1, -1, 1) + phase)
    return data[:, :length], data[:, length:]


torch.manual_seed(21)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = AutoregressiveForecaster(n_series=3).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
for epoch in range(4):
    past, future = windows(16, 12, 3, 3)
    past, future = past.to(device), future.to(device)
    loss = F.smooth_l1_loss(model(past), future)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    print(f"{epoch}: {loss.item():.4f}")
