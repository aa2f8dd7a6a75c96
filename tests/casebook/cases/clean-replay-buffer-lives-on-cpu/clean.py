import numpy as np
import torch
import torch.nn as nn


class ReplayBuffer:
    def __init__(self, capacity, n_obs):
        self.obs = torch.zeros(capacity, n_obs)
        self.next_obs = torch.zeros(capacity, n_obs)
        self.action = torch.zeros(capacity, dtype=torch.long)
        self.reward = np.zeros(capacity, dtype=np.float32)
        self.size, self.capacity = 0, capacity

    def add(self, obs, action, reward, next_obs):
        i = self.size % self.capacity
        self.obs[i] = obs
        self.next_obs[i] = next_obs
        self.action[i] = action
        self.reward[i] = reward.item()
        self.size += 1

    def sample(self, n, device):
        idx = torch.randint(0, min(self.size, self.capacity), (n,))
        reward = torch.from_numpy(self.reward[idx.numpy()])
        return tuple(t.to(device) for t in (self.obs[idx], self.action[idx], reward, self.next_obs[idx]))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
target = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
target.load_state_dict(net.state_dict())
buffer = ReplayBuffer(200, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
gamma = torch.tensor(0.99)

obs = torch.randn(4, device=device)
for step in range(60):
    with torch.no_grad():
        action = net(obs).argmax()
    next_obs = obs + 0.1 * torch.randn(4, device=device)
    reward = -next_obs.norm()
    buffer.add(obs, action, reward, next_obs)
    obs = next_obs
    if step >= 32:
        o, a, r, o2 = buffer.sample(16, device)
        q = net(o).gather(1, a[:, None])[:, 0]
        with torch.no_grad():
            goal = r + gamma * target(o2).max(1).values
        loss = (q - goal).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
q_values = net(obs).detach().cpu().numpy()
print(q_values.round(3), float(loss))
