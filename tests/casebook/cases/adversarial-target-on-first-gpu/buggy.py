import argparse

import torch
import torch.nn as nn


class PatchDiscriminator(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, ch, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(ch, 1, 4, padding=1)
        )

    def forward(self, x):
        return self.net(x)


class LeastSquaresGANLoss(nn.Module):
    def __init__(self, real=1.0, fake=0.0):
        super().__init__()
        self.real, self.fake = real, fake
        self.loss = nn.MSELoss()

    def make_target(self, logits, is_real):
        value = self.real if is_real else self.fake
        filled = torch.full(logits.shape, value)
        return filled.to("cuda" if torch.cuda.is_available() else "cpu")

    def forward(self, logits, is_real):
        target = self.make_target(logits, is_real)
        return self.loss(logits, target)


def main(args):
    torch.manual_seed(0)
    device = torch.device(args.device)
    generator = nn.Conv2d(1, 1, 3, padding=1).to(device)
    discriminator = PatchDiscriminator().to(device)
    adv = LeastSquaresGANLoss()
    opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    for step in range(args.steps):
        real = torch.rand(4, 1, 16, 16, device=device)
        fake = generator(torch.randn(4, 1, 16, 16, device=device)).detach()
        loss = 0.5 * (adv(discriminator(real), True) + adv(discriminator(fake), False))
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
    print("d loss", round(loss.item(), 4))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:1" if torch.cuda.device_count() > 1 else "cpu")
    parser.add_argument("--steps", type=int, default=3)
    main(parser.parse_args())
