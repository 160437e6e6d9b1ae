"""The parts of the sample policy that are the same on every box."""

from __future__ import annotations

HEAD = """\
# hubgov policy: who may use which GPUs, how much, for how long.{note}
# `hubgov policy check FILE` finds mistakes, `hubgov policy diff FILE` shows what an edit changes,
# `hubgov policy apply FILE` puts it in force.
# hubgov 策略：谁可以使用哪些 GPU、多少、多久。
# 用 `hubgov policy check FILE` 检查，`hubgov policy diff FILE` 查看改动，`hubgov policy apply FILE` 生效。
version: 1
timezone: {timezone}
currency: CNY

# enforce = act; observe = record everything, stop nothing.
# enforce = 执行；observe = 只记录，不停止任何任务。
mode: enforce

# To whom whatever says nothing else belongs: no device is ever without team, environment and owner.
# 默认归属：任何设备都有团队、环境和负责人。
defaults: {{environment: experiment, owner: {admin}, team: platform}}
"""

PEOPLE = """\
# Teams: the tree of quotas. `groups` are groups of the hub whose members belong to the team; leads approve.
# 团队：即配额树。groups 为 JupyterHub 用户组；leads 为团队负责人，负责审批。
teams:
  platform: {{leads: [{admin}]}}
  prod-infer: {{leads: [{admin}]}}
  research: {{leads: [{lead}]}}
  vision: {{parent: research, groups: [vision]}}
  nlp: {{parent: research, groups: [nlp]}}

# Projects: each with an owner, an environment, a priority and, where wanted, a budget.
# 项目：各有负责人、环境、优先级，可设预算。
projects:
  lab: {{team: platform, owner: {admin}}}
  seg: {{team: vision, owner: {vision}, budget: {{amount: 20000, period: month}}}}
  chat: {{team: nlp, owner: {nlp}, budget: {{amount: 20000, period: month}}}}
  sandbox: {{team: research, owner: {lead}, tier: temporary}}
  pretrain: {{team: platform, owner: {lead}, environment: production, tier: key, priority: 10}}
  serving: {{team: prod-infer, owner: {admin}, environment: production, tier: key, priority: 20}}
"""

SITE_PEOPLE = """\
# Teams: the tree of quotas. `groups` are groups of the hub whose members belong to the team; leads approve.
# Whoever is in none of these groups can start nothing. A member of several chooses by the project.
# 团队：即配额树。groups 为 JupyterHub 用户组；leads 为团队负责人，负责审批。
# 不属于任何用户组的用户无法启动；属于多个组的用户通过项目选择。
teams:
  platform: {{leads: [{admin}]}}
  prod-infer: {{leads: [{admin}]}}
  research: {{leads: [{admin}]}}
{teams}

# Projects: each with an owner, an environment, a priority and, where wanted, a budget.
# 项目：各有负责人、环境、优先级，可设预算。
projects:
  lab: {{team: platform, owner: {admin}}}
  sandbox: {{team: research, owner: {admin}, tier: temporary}}
  pretrain: {{team: platform, owner: {admin}, environment: production, tier: key, priority: 10}}
  serving: {{team: prod-infer, owner: {admin}, environment: production, tier: key, priority: 20}}
{projects}
"""

QUEUES = """\
# Queues: a lane with its own rules for each kind of work.
# 队列：每类任务各有规则。
queues:
  # Notebooks: a lease of 4 hours, twice 2 hours more without asking; idle ones are asked about, then ended.
  # Notebook：默认 4 小时；可自助延长两次，每次 2 小时；空闲时先询问，再保存并回收。
  experiment:
    kinds: [notebook]
    pools: {notebook_pools}
    priority: 50
    lease: {{default: 4h, max: 12h}}
    extension:
      self_serve: {{count: 2, step: 2h}}
      approvers: [team-lead, admin]
      max_total: 24h
      reason: required
    idle:
      kernel_after: 30m
      after: 30m
      confirm: 15m
      grace: 15m
      keep: {{count: 2, for: 1h}}
      max_unverified: 4h
    min_runtime: 10m
    caps: {{per_user: {{gpus: 2, workloads: 3, pending: 20}}}}

  # Experiment training: waits its turn by fair share, gives lent devices back with grace and checkpoint.
  # 实验训练：按公平份额排队；借用的卡会在宽限期和检查点之后归还。
  training:
    kinds: [training]
    pools: [train]
    priority: 40
    priority_range: [0, 10]
    lease: {{default: 12h, max: 3d}}
    extension: {{self_serve: {{count: 1, step: 4h}}, max_total: 5d}}
    grace: 5m
    min_runtime: 10m
    retry: {{max: 2, backoff: 1m}}

  # Production training: its own pool, long leases.
  # 生产训练：专用资源池，租期长。
  production:
    kinds: [training]
    pools: [prod-train]
    priority: 80
    order: priority
    priority_range: [0, 10]
    allow: [non_preemptible]
    lease: {{default: 1d, max: 14d}}
    extension: {{self_serve: {{count: 0}}, max_total: 30d}}
    checkpoint: required
    grace: 10m
    retry: {{max: 3, backoff: 2m}}

  # Online inference: protected, never a victim, no end.
  # 在线推理：受保护，不会被抢占，没有租期上限。
  inference:
    kinds: [inference]
    pools: [online]
    class: protected
    priority: 100
    lease: {{default: null, max: null}}
    checkpoint: none

  # Batch inference: fills what is idle, also the online pool at night, and gives way at once.
  # 批量推理：利用空闲算力，夜间可用在线池，随时让出。
  batch:
    kinds: [batch_inference]
    pools: [batch, online]
    class: opportunistic
    priority: 20
    lease: {{default: 2h, max: 12h}}
    grace: 2m
    retry: {{max: 5, backoff: 1m}}
    cost_factor: 0.8

  # Evaluation: short, in between.
  # 评测：短任务，见缝插针。
  evaluation:
    kinds: [evaluation]
    pools: [train, dev]
    priority: 30
    lease: {{default: 1h, max: 4h}}
    retry: {{max: 1}}

  # Data processing: CPUs and memory, no GPU.
  # 数据处理：只用 CPU 和内存。
  data:
    kinds: [data]
    pools: [train, dev]
    priority: 30
    lease: {{default: 4h, max: 1d}}
    checkpoint: none
    caps: {{per_user: {{gpus: 0}}}}
    retry: {{max: 2}}
"""

TAIL = """\
# Off-peak hours, used by quota rows with `window`.
# 错峰时段，供带 window 的配额行使用。
windows:
  nights: {days: mon-sun, from: "22:00", to: "08:00"}

# Most that one user holds over all queues.
# 每个用户在所有队列中的总上限。
caps: {per_user: {gpus: 8}}

# Past use weighs half as much after a week.
# 过去的用量每周减半计权。
fairness: {half_life: 7d, fair_reclaim: false, sheltered: 1}

# Borrowed and opportunistic time costs less.
# 借用和机会型用量更便宜。
costs: {class: {opportunistic: 0.7}, borrowed: 0.7}

archive: {logs_after: 30d, checkpoints_after: 14d, to: archive}
"""
