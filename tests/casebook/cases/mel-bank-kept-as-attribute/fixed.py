import math

import torch
import torch.nn as nn


def hz_to_mel(f):
    return 2595.0 * math.log10(1.0 + f / 700.0)


class LogMel(nn.Module):
    def __init__(self, sample_rate=8000, n_fft=128, hop=64, n_mels=12):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)
        freqs = torch.linspace(0, sample_rate / 2, n_fft // 2 + 1)
        mels = torch.linspace(hz_to_mel(0), hz_to_mel(sample_rate / 2), n_mels + 2)
        centres = 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
        slopes = centres.unsqueeze(0) - freqs.unsqueeze(1)
        widths = centres[1:] - centres[:-1]
        down = -slopes[:, :-2] / widths[:-1]
        up = slopes[:, 2:] / widths[1:]
        fb = torch.clamp(torch.minimum(down, up), min=0.0)
        self.register_buffer("fb", fb, persistent=False)
        self.norm = nn.BatchNorm1d(n_mels)

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True).abs().pow(2)
        mel = torch.matmul(spec.transpose(1, 2), self.fb)
        return self.norm(torch.log(mel + 1e-6).transpose(1, 2))


class Tagger(nn.Module):
    def __init__(self, n_tags=4):
        super().__init__()
        self.frontend = LogMel()
        self.gru = nn.GRU(12, 16, batch_first=True)
        self.out = nn.Linear(16, n_tags)

    def forward(self, wave):
        _, h = self.gru(self.frontend(wave).transpose(1, 2))
        return self.out(h[-1])


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Tagger().to(device)
    optim = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for it in range(4):
        wave = torch.randn(6, 1024, device=device)
        tags = torch.randint(0, 2, (6, 4), device=device).float()
        loss = criterion(model(wave), tags)
        optim.zero_grad()
        loss.backward()
        optim.step()
        print(it, round(loss.item(), 4))
