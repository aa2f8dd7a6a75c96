import torch
import torch.nn as nn


def squash(raw, limits=torch.tensor([2.0, 0.5])):
    return torch.tanh(raw) * limits


class GaussianPolicy(nn.Module):
    def __init__(self, n_obs=5, n_act=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_obs, 32), nn.Tanh())
        self.mu = nn.Linear(32, n_act)
        self.log_std = nn.Parameter(torch.full((n_act,), -0.5))

    def forward(self, obs):
        mu = self.mu(self.body(obs))
        return torch.distributions.Normal(mu, self.log_std.exp().expand_as(mu))


class PointMass:
    """A batch of points that are pushed towards the origin."""

    def __init__(self, n, device):
        self.device = device
        self.state = torch.randn(n, 5, device=device)

    def step(self, action):
        self.state = self.state.clone()
        self.state[:, :2] += 0.1 * action
        return self.state, -self.state[:, :2].norm(dim=1)


def main():
    torch.manual_seed(12)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy = GaussianPolicy().to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for episode in range(3):
        env = PointMass(16, device)
        log_probs, rewards = [], []
        for _ in range(6):
            dist = policy(env.state)
            raw = dist.sample()
            _, reward = env.step(squash(raw))
            log_probs.append(dist.log_prob(raw).sum(-1))
            rewards.append(reward)
        returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.stack(log_probs) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(episode, round(returns[0].mean().item(), 3))


if __name__ == "__main__":
    main()
