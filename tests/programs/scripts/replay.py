# culprit: self.states
# operation: aten::index
# says: indices should be either on cpu or on the same device as the indexed tensor (cpu)
"""Q-learning with a replay buffer on the device and a target network."""

import random

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
random.seed(0)
torch.manual_seed(0)


class Replay:
    def __init__(self, size):
        self.states = torch.zeros(size, 4, device=device)  # planted: self.states = torch.zeros(size, 4)
        self.actions = torch.zeros(size, dtype=torch.long, device=device)
        self.rewards = torch.zeros(size, device=device)
        self.count, self.size = 0, size

    def add(self, state, action, reward):
        place = self.count % self.size
        self.states[place], self.actions[place], self.rewards[place] = state, action, reward
        self.count += 1

    def sample(self, count):
        chosen = torch.randint(min(self.count, self.size), (count,), device=device)
        return self.states[chosen], self.actions[chosen], self.rewards[chosen]  # fault


policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)).to(device)
target = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)).to(device)
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-3)
memory = Replay(32)
state = torch.randn(4)
for step in range(40):
    if random.random() < 0.3:
        action = random.randrange(3)
    else:
        with torch.no_grad():
            action = policy(state.to(device)).argmax().item()
    reward = 1.0 - (state[action] - 0.5).abs().item()
    memory.add(state, action, reward)
    state = torch.randn(4)
    if step < 8:
        continue
    states, actions, rewards = memory.sample(8)
    with torch.no_grad():
        wanted = rewards + 0.9 * target(states).max(1).values
    values = policy(states).gather(1, actions[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(values, wanted)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 1.0)
    optimizer.step()
    if step % 10 == 0:
        target.load_state_dict(policy.state_dict())
distribution = torch.distributions.Categorical(logits=policy(memory.states))
assert distribution.sample().device == memory.states.device
print(loss.item(), distribution.entropy().mean().item())
