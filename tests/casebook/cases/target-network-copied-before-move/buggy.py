import copy

import torch
import torch.nn as nn


class QNetwork(nn.Module):
    def __init__(self, n_obs, n_actions):
        super().__init__()
        self.trunk = nn.Linear(n_obs, 32)
        self.value = nn.Linear(32, 1)
        self.advantage = nn.Linear(32, n_actions)

    def forward(self, obs):
        h = torch.relu(self.trunk(obs))
        a = self.advantage(h)
        return self.value(h) + a - a.mean(dim=1, keepdim=True)


class Agent:
    def __init__(self, n_obs, n_actions, device, gamma=0.98, sync_every=3):
        self.device, self.gamma, self.sync_every = device, gamma, sync_every
        self.online = QNetwork(n_obs, n_actions)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.online.to(device)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-3)
        self.updates = 0

    def act(self, obs):
        with torch.no_grad():
            return self.online(obs.to(self.device).unsqueeze(0)).argmax(1).item()

    def learn(self, batch):
        obs, action, reward, next_obs, done = (part.to(self.device) for part in batch)
        q = self.online(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.target(next_obs).max(dim=1).values
            goal = reward + self.gamma * (1 - done) * best
        loss = nn.functional.smooth_l1_loss(q, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.sync_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


torch.manual_seed(7)
agent = Agent(4, 2, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
print("first action", agent.act(torch.zeros(4)))
for _ in range(6):
    batch = (torch.randn(32, 4), torch.randint(0, 2, (32,)), torch.randn(32), torch.randn(32, 4), torch.zeros(32))
    loss = agent.learn(batch)
print(f"loss {loss:.4f}")
