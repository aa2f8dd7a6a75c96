import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Critic(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.l1 = nn.Linear(obs_dim + act_dim, 32)
        self.l2 = nn.Linear(32, 1)

    def forward(self, state, action):
        x = F.relu(self.l1(torch.cat([state, action], dim=-1)))
        return self.l2(x)


class Memory:
    def __init__(self, capacity):
        self.buffer = deque(maxlen=capacity)

    def push(self, *transition):
        self.buffer.append(transition)

    def sample(self, n):
        batch = random.sample(self.buffer, n)
        return [torch.as_tensor(np.array(column), dtype=torch.float32) for column in zip(*batch)]


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
random.seed(3)
torch.manual_seed(3)
rng = np.random.default_rng(3)

memory = Memory(500)
for _ in range(64):
    memory.push(rng.normal(size=6), rng.normal(size=2), rng.normal(), rng.normal(size=6), float(rng.random() < 0.1))

critic = Critic(6, 2).to(device)
opt = torch.optim.Adam(critic.parameters(), lr=3e-4)

for step in range(5):
    states, actions, rewards, next_states, dones = memory.sample(32)
    for tensor in (states, actions, rewards, next_states, dones):
        tensor = tensor.to(device)
    with torch.no_grad():
        target = rewards + 0.99 * (1 - dones) * critic(next_states, actions).squeeze(-1)
    loss = F.mse_loss(critic(states, actions).squeeze(-1), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"critic loss {loss.item():.3f}")
