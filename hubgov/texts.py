"""What people read, in English and Chinese: one closed table each of sentences, states, next steps.

No surface writes a sentence of its own: hub pages, the service, the command line and Lab show these. A sentence
follows one order: what, the rule, limit / in use / this request, when it changes by itself. Standard library
only, so that the command line may use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

LANGUAGES = ("en", "zh")

SENTENCES: Mapping[str, tuple[str, str]] = {
    # waiting
    "waiting_quota": (
        "Waiting for quota: {scope} has {have} of {limit} {unit} left on {flavor} in pool {pool}, this request "
        "needs {need}.{frees}",
        "等待配额：{scope} 在资源池 {pool} 的 {flavor} 上还剩 {have} / {limit} {unit}，本次请求 {need}。{frees}",
    ),
    "waiting_devices": (
        "Waiting for devices: {have} of {limit} {unit} of {flavor} in pool {pool} can be used now, this request "
        "needs {need}.{frees}",
        "等待设备：资源池 {pool} 的 {flavor} 现有 {have} / {limit} {unit} 可用，本次请求 {need}。{frees}",
    ),
    "waiting_topology": (
        "Waiting for devices on one node: {need} {unit} of {flavor} are free in pool {pool} but not together; "
        "the most on one node is {have}.{frees}",
        "等待同一节点上的设备：资源池 {pool} 的 {flavor} 空闲总数够 {need} {unit}，"
        "但不在同一节点；单节点最多 {have}。{frees}",
    ),
    "over_own_limit": (
        "Waiting for your own limit: {scope} allows {limit} {unit}, {have} left, this request {need}.{frees}",
        "受限额限制：{scope} 最多 {limit} {unit}，剩余 {have}，本次请求 {need}。{frees}",
    ),
    "held": (
        "Queue {queue} is on hold ({reason}); nothing in it starts until it is released.",
        "队列 {queue} 已暂停（{reason}），恢复前不会启动任何请求。",
    ),
    "engine_away": (
        "What starts this kind of work (JupyterHub, for notebooks) does not answer. The place in line is kept; it "
        "goes on by itself.",
        "负责启动此类任务的组件（笔记本为 JupyterHub）没有响应。排队位置已保留，恢复后自动继续。",
    ),
    "waiting_dependency": ("Waiting for {scope} to end.", "等待 {scope} 结束。"),
    "waiting_window": (
        "Waiting for its hours: {scope} gives {have} of {limit} {unit} of {flavor} in pool {pool} at this hour, "
        "this request needs {need}. The quota changes {at}.",
        "等待时段：{scope} 当前时段在资源池 {pool} 的 {flavor} 上可用 {have} / {limit} {unit}，"
        "本次请求 {need}。配额将于 {at} 变化。",
    ),
    "over_budget": (
        "Waiting for budget: {scope} has {have} of {limit} left, this request needs {need}.",
        "等待预算：{scope} 剩余 {have} / {limit}，本次请求需 {need}。",
    ),
    "waiting_victims": (
        "Its devices are promised and being vacated: {need} {unit} of {flavor} in pool {pool}.{frees}",
        "设备已预留，正在腾出：资源池 {pool} 的 {flavor}，{need} {unit}。{frees}",
    ),
    "sheltered_behind": (
        "Waiting behind {scope}, whose start is promised: {need} {unit} of {flavor} in pool {pool} would delay it.",
        "排在已承诺启动时间的 {scope} 之后：占用资源池 {pool} 的 {flavor} {need} {unit} 会使其延后。",
    ),
    "misconfigured": (
        "The policy or the devices changed in a way that leaves no place for it: {scope}.",
        "策略或设备变更后无法安置该请求：{scope}。",
    ),
    "backoff": ("Trying again {at} after a failed start.", "启动失败，将于 {at} 重试。"),
    "starting": ("Starting.", "正在启动。"),
    "running": ("Running.", "运行中。"),
    "running_busy": ("Running and at work: {signs}.", "运行中，正在工作：{signs}。"),
    "running_settling": (
        "Running, quiet since {since}. If nothing happens you are asked about it at {full_at}.",
        "运行中，自 {since} 起没有活动。若一直没有活动，将于 {full_at} 询问。",
    ),
    "running_idle": (
        "Running, and idle since {since} by every sign.",
        "运行中，自 {since} 起各项均无活动。",
    ),
    "running_unknown": (
        "Running; whether it is idle isn't known ({signs}), so nothing is done about it.",
        "运行中；是否空闲未知（{signs}），不作处理。",
    ),
    "running_unseen": ("Running; it is about to be looked at.", "运行中，即将检查活动情况。"),
    "running_suspect": (
        "Running, and idle since {since}. The policy only observes, so nothing is stopped.",
        "运行中，自 {since} 起空闲。策略仅观察，不会停止。",
    ),
    "running_asked": (
        "Running, and idle since {since}. It is returned at {deadline} unless something runs in it or you choose "
        "Keep. Keeps left: {left}.",
        "运行中，自 {since} 起空闲。若不运行任务也不保留，将于 {deadline} 收回。剩余保留次数：{left}。",
    ),
    "running_kept": (
        "Running. You kept it until {deadline}; keeps left: {left}.",
        "运行中。已保留至 {deadline}，剩余保留次数：{left}。",
    ),
    "running_grace": (
        "Idle since {since} and about to stop at {deadline}, unless something runs in it or you choose Keep. "
        "Keeps left: {left}.",
        "自 {since} 起空闲，将于 {deadline} 停止；运行任务或选择保留可取消。剩余保留次数：{left}。",
    ),
    "fits_now": (
        "Can start now in pool {pool}: {flavor}.",
        "可立即在资源池 {pool} 启动：{flavor}。",
    ),
    "ended": ("Ended: {reason}.", "已结束：{reason}。"),
    # refused
    "impossible": (
        "Can never start: the most that queue {queue} could give is {most} {unit}, this request asks for {asked}.",
        "无法满足：队列 {queue} 最多可提供 {most} {unit}，本次请求 {asked}。",
    ),
    "impossible_memory": (
        "Can never start: no card that queue {queue} could give has {asked} of memory; the largest, {flavor}, has "
        "{most}.",
        "无法满足：队列 {queue} 可提供的卡中没有 {asked} 显存的，最大的 {flavor} 为 {most}。",
    ),
    "above_maximum": (
        "Above the maximum: {rule} allows {limit}, this request asks for {asked}.",
        "超过上限：{rule} 最多 {limit}，本次请求 {asked}。",
    ),
    "too_many_pending": (
        "Too many waiting requests: {rule} allows {limit}.",
        "排队请求过多：{rule} 最多 {limit}。",
    ),
    "invalid": ("Not valid: {field} is {asked}.", "无效：{field} 为 {asked}。"),
    "unknown_queue": ("No queue {what}. Queues: {allowed}.", "没有队列 {what}。可用队列：{allowed}。"),
    "unknown_project": (
        "No project {what} for you. Your projects: {allowed}.",
        "没有可用的项目 {what}。你的项目：{allowed}。",
    ),
    "name_project": (
        "The project to charge is not named. Your projects: {allowed}.",
        "未指明要计入的项目。你的项目：{allowed}。",
    ),
    "no_project": (
        "You are in no team, and every request is charged to a project of one. Your groups at the hub: {groups}.",
        "你不属于任何团队，而每个请求都要计入团队的项目。你在 hub 的用户组：{groups}。",
    ),
    "unknown_flavor": (
        "No card type {what}. Card types: {allowed}.",
        "没有卡型 {what}。可用卡型：{allowed}。",
    ),
    "not_allowed": (
        "Not allowed by {rule}: {what}. Allowed: {allowed}.",
        "{rule} 不允许：{what}。允许：{allowed}。",
    ),
    "data_access": (
        "Data access level {level} may not enter {pools}.",
        "数据访问级别 {level} 不能进入 {pools}。",
    ),
    "fit_guard": (
        "Too small for {flavors}: these cards are kept for requests of at least {least} memory.",
        "请求过小，不适合 {flavors}：这些卡留给至少 {least} 显存的请求。",
    ),
    # extensions
    "extended": (
        "Extended to {expires_at} (+{by}). Extensions left: {left}.",
        "已延长至 {expires_at}（+{by}）。剩余延长次数：{left}。",
    ),
    "beyond_self_serve": (
        "Not extended yet: {rule} allows {limit} without approval, {have} left, this request +{by}. "
        "It needs the yes of {approvers}.",
        "尚未延长：{rule} 无需审批的上限为 {limit}，剩余 {have}，本次 +{by}。需由 {approvers} 批准。",
    ),
    "max_total": (
        "Not extended: queue {queue} allows {limit} in all ({rule}), {have} left, this request +{by}.",
        "未延长：队列 {queue} 总时长上限 {limit}（{rule}），还可延长 {have}，本次 +{by}。",
    ),
    "no_extension": (
        "Not extended: queue {queue} has no extensions ({rule}).",
        "未延长：队列 {queue} 不支持延长（{rule}）。",
    ),
    "no_end": ("Nothing to extend: this lease has no end.", "无需延长：该租约没有到期时间。"),
    "expired_meanwhile": (
        "Not extended: +{by} would lie in the past; the lease ended {have_ago} ago.",
        "未延长：+{by} 后仍早于现在；租约已于 {have_ago} 前到期。",
    ),
    # keep
    "no_keep": (
        "Not kept: queue {queue} has no Keep ({rule}). What runs in the session keeps it.",
        "未保留：队列 {queue} 不支持保留（{rule}）。运行任务即可继续。",
    ),
    "keep_used_up": (
        "Not kept: {rule} allows {limit} {unit} without work in between, all used. What runs in the session "
        "keeps it.",
        "未保留：{rule} 最多连续 {limit} {unit}，已用完。运行任务即可继续。",
    ),
    "stale": ("It changed since you looked.", "内容已变化，请刷新后再试。"),
}

STEPS: Mapping[str, tuple[str, str]] = {
    "wait": ("Wait: your place is kept", "等待：排队位置会保留"),
    "change_request": ("Change the request", "修改请求"),
    "other_queue": ("Choose another queue or profile", "改用其他队列或配置"),
    "whole_gpus": (
        "A share is below 1 GPU; more are whole numbers, equal on every node",
        "份额须小于 1 张 GPU；否则须为整数，且各节点相等",
    ),
    "smaller_request": ("Ask for fewer GPUs or another card", "减少 GPU 数量或换一种卡"),
    "cancel_another": ("Stop or cancel one of your own", "停止或取消自己的另一个会话"),
    "cancel": ("Cancel", "取消"),
    "ask_memory": ("Say how much device memory you need", "写明所需显存"),
    "override": ("Ask with an override and a reason, where the queue allows it", "在队列允许时说明理由并申请越过"),
    "save_work": ("Save your work before the end", "到期前保存工作"),
    "submit_batch": ("Submit the rest as a batch job", "把剩余工作提交为批任务"),
    "shorter_extension": ("Ask for a shorter extension", "缩短延长时间"),
    "longer_extension": ("Ask for a longer extension", "申请更长的延长"),
    "keep": ("Keep it for a while", "选择保留"),
    "run_something": ("Run something in it", "运行任务"),
    "extend": ("Extend it", "申请延长"),
    "ask_lead": (
        "Ask an administrator of the hub to add you to the group of your team, then start again",
        "请 hub 管理员将你加入团队对应的用户组，然后重新启动",
    ),
    "ask_approver": ("Ask {approvers}", "联系 {approvers}"),
}

REASONS: Mapping[str, tuple[str, str]] = {
    "impossible": ("never possible", "无法满足"),
    "misconfigured": ("misconfigured", "配置有误"),
    "held": ("queue on hold", "队列暂停"),
    "waiting_dependency": ("waits for another", "等待其他任务"),
    "over_own_limit": ("your own limit", "自身限额"),
    "over_budget": ("budget", "预算"),
    "waiting_window": ("quota window", "配额时段"),
    "waiting_victims": ("devices on their way back", "设备正在收回"),
    "waiting_quota": ("quota", "配额"),
    "waiting_devices": ("devices", "设备"),
    "waiting_topology": ("devices on one node", "同一节点的设备"),
    "sheltered_behind": ("kept for one that waited longer", "为等待更久者保留"),
    "backoff": ("trying again later", "稍后重试"),
    "starting": ("starting", "启动中"),
}
"""The reasons to wait in a word or two, for tables; the sentence is in SENTENCES."""

STATES: Mapping[str, tuple[str, str]] = {
    "pending": ("waiting", "排队中"),
    "held": ("queue on hold", "队列暂停"),
    "admitted": ("admitted", "已准入"),
    "starting": ("starting", "启动中"),
    "running": ("running", "运行中"),
    "expiring": ("ending", "即将停止"),
    "preempting": ("being reclaimed", "正在收回"),
    "stopping": ("stopping", "停止中"),
    "quarantined": ("stopped, process not gone", "已停止，进程未退出"),
    "suspect": ("node not answering", "节点无响应"),
    "succeeded": ("succeeded", "成功"),
    "failed": ("failed", "失败"),
    "cancelled": ("cancelled", "已取消"),
    "expired": ("ended by its time limit", "到期结束"),
    "culled": ("ended when idle", "空闲收回"),
    "lost": ("lost", "丢失"),
    "refused": ("refused", "已拒绝"),
}

END_REASONS: Mapping[str, tuple[str, str]] = {
    "completed": ("it ended by itself", "自行结束"),
    "failed": ("its process ended with an error or was killed", "进程出错或被终止"),
    "start_failed": ("it could not be started; nothing was charged", "未能启动，不计费"),
    "start_deadline": ("it did not start in time; nothing was charged", "未按时启动，不计费"),
    "environment_unavailable": ("its environment is not available", "运行环境不可用"),
    "cancelled": ("its owner stopped it", "由所有者停止"),
    "replaced": ("its owner asked for something else instead", "所有者改为其他请求"),
    "max_wait": ("it waited longer than the queue allows", "等待超过队列上限"),
    "admin": ("an admin or lead stopped it", "由管理员或负责人停止"),
    "lease": ("time limit", "达到时长上限"),
    "max": ("the longest time that extensions allow", "达到延长后的总时长上限"),
    "window": ("its quota window closed", "配额时段结束"),
    "idle": ("it was idle", "空闲"),
    "unclaimed": ("nobody opened it", "无人打开"),
    "preempted": ("its devices were needed", "设备被收回"),
    "node_lost": ("its node was lost", "节点丢失"),
}

FAILURES: Mapping[str, tuple[str, str]] = {
    "command_not_found": (
        "The command {command} was not found; commands are looked for on the PATH, files from the folder {cwd}.",
        "找不到命令 {command}；命令在 PATH 中查找，文件从目录 {cwd} 查找。",
    ),
    "command_not_executable": (
        "{command} can't be executed: it is a folder, not marked executable (chmod +x), or its interpreter is "
        "missing.",
        "{command} 无法执行：它是目录、没有执行权限（chmod +x），或缺少解释器。",
    ),
    "command_failed": ("The system could not execute {command}; see the log.", "系统无法执行 {command}，见日志。"),
    "directory_missing": ("There is no folder {cwd} in the owner's home.", "所有者主目录中没有目录 {cwd}。"),
    "directory_closed": (
        "The folder {cwd} can't be entered: it must lie in the owner's home, with no link on the way.",
        "无法进入目录 {cwd}：须位于所有者主目录内，路径中不能有链接。",
    ),
    "owner_departed": (
        "The hub deleted the user who had asked for it.",
        "hub 已删除提交它的用户。",
    ),
    "no_home": (
        "The hub gives its owner no home on this machine; the hub's log says why.",
        "hub 未在本机为其所有者提供主目录，原因见 hub 日志。",
    ),
    "box_failed": ("Its box could not be made; see the log.", "无法创建隔离环境，见日志。"),
    "unsupervised": (
        "Who stood by it was killed, so how it ended is not known.",
        "监护进程被终止，结束方式未知。",
    ),
    "exit_code": ("The command ended with an error; see the log.", "命令以错误结束，见日志。"),
    "signal": ("The command was ended by signal {signal}.", "命令被信号 {signal} 终止。"),
}
"""Classes of failure of a job, as its owner reads them."""

NOTES: Mapping[str, tuple[str, str]] = {"user_departed": ("the hub deleted the user", "hub 已删除该用户")}
"""Why hubgov itself ended something, where no person wrote a reason."""

WORDS: Mapping[str, tuple[str, str]] = {
    "GPUs": ("GPUs", "张 GPU"),
    "workloads": ("sessions", "个会话"),
    "cpus": ("CPUs", "个 CPU"),
    "mib": ("of RAM", "内存"),
    "pending": ("waiting requests", "个排队请求"),
    "times": ("times", "次"),
    "nodes": ("nodes", "个节点"),
    "frees": (" The first is free at the latest {at} ({who}).", "最早一个最迟 {at} 释放（{who}）。"),
    "frees_after_end": (
        " The first is free at the latest {at} ({who}: end {end} + grace + stop).",
        "最早一个最迟 {at} 释放（{who}：{end} 到期 + 宽限 + 停止）。",
    ),
    "yours": ("your {id}", "你的 {id}"),
    "team_mate": ("{owner}'s {id}", "{owner} 的 {id}"),
    "other_team": ("another team", "其他团队"),
    "none": ("none", "无"),
    "root": ("the shared part", "共享部分"),
    "team": ("team {name}", "团队 {name}"),
    "project": ("project {name}", "项目 {name}"),
    "pool": ("pool {name}", "资源池 {name}"),
    "node": ("node {name}", "节点 {name}"),
    "queue": ("queue {name}", "队列 {name}"),
    "pools": ("pools {name}", "资源池 {name}"),
    "workload": ("{name}", "任务 {name}"),
    "priority": ("priority {name}", "优先级 {name}"),
    "idle_evidence": ("{kind}: {text}", "{kind}：{text}"),
    "idle_evidence_since": ("{kind}: {text}, last busy {at}", "{kind}：{text}，最近活动 {at}"),
    "from_to": ("{low} to {high}", "{low} 到 {high}"),
    "no_probe": ("no probe reads this node", "没有探针读取该节点"),
    "cpu_only": ("no GPU", "无 GPU"),
    "nobody": ("nobody that the queue names", "（该队列未指定审批人）"),
    "own_use": ("{held} of {limit} GPUs in queue {queue}", "队列 {queue} 已用 {held} / {limit} 张 GPU"),
    "no_limit": ("any number", "不限"),
    "stopped_by": (" (by {who}: {why})", "（由 {who} 停止：{why}）"),
}

EXTENSION_STATES: Mapping[str, tuple[str, str]] = {
    "granted": ("granted", "已批准"),
    "needs_approval": ("needs approval", "待审批"),
    "denied": ("denied", "已拒绝"),
    "lapsed": ("lapsed", "已失效"),
    "withdrawn": ("withdrawn", "已撤回"),
}

DEVICE_STATES: Mapping[str, tuple[str, str]] = {
    "free": ("free", "空闲"),
    "partly": ("partly in use", "部分占用"),
    "held": ("in use", "占用"),
    "fenced": ("fenced: its process is not gone", "隔离中：进程未退出"),
    "sick": ("sick", "故障"),
    "unknown": ("not answering", "无应答"),
    "drained": ("drained", "停止接收"),
    "unassigned": ("in no pool", "未归属"),
}

SIGNALS: Mapping[str, tuple[str, str]] = {
    "gpu": ("GPU use", "GPU 使用"),
    "cpu": ("CPU use", "CPU 使用"),
    "io": ("disk", "读写"),
    "kernel": ("kernels", "内核"),
    "terminal": ("terminals", "终端"),
    "child": ("processes", "子进程"),
    "human": ("people", "人工操作"),
}
"""What a sign of work or idleness comes from."""

LEVELS: Mapping[str, tuple[str, str]] = {
    "busy": ("busy", "忙"),
    "idle": ("idle", "空闲"),
    "unknown": ("unknown", "未知"),
}

EVIDENCE: Mapping[str, tuple[str, str]] = {
    "no_card": ("no GPU", "无 GPU"),
    "card_duty": ("card {index} at {percent} %", "卡 {index} 利用率 {percent} %"),
    "card_power": ("card {index} draws {watts} W, more than when idle", "卡 {index} 功耗 {watts} W，高于空闲值"),
    "card_shared": (
        "card {index} works, and whose work it is can't be told",
        "卡 {index} 正在工作，无法区分属于谁",
    ),
    "card_unknown": ("card {index} can't be read", "卡 {index} 无法读取"),
    "cpu": ("{percent} % of a core", "占用单核 {percent} %"),
    "io": ("{kib} KiB a minute", "每分钟 {kib} KiB"),
    "children": ("{count} started by kernels", "内核启动的进程 {count} 个"),
    "no_children": ("none beside the kernels", "除内核外没有"),
    "jobs": ("{count} run in terminals", "终端中运行的进程 {count} 个"),
    "no_jobs": ("nothing runs in terminals", "终端中没有运行任务"),
    "terminals": ("{count} open, nothing runs in them", "打开 {count} 个，没有运行任务"),
    "kernel_busy": ("{path} works on {count} cells", "{path} 正在执行 {count} 个单元"),
    "kernel_waits": ("{path} waits for input", "{path} 等待输入"),
    "kernel_unheard": ("whether {path} works can't be heard", "听不到 {path} 是否在执行"),
    "kernels_idle": ("{count} kernels, none works", "{count} 个内核，均未执行"),
    "no_kernels": ("no kernel", "没有内核"),
    "edited": ("last edit", "最近一次编辑"),
    "no_edit": ("no edit yet", "尚无编辑"),
    "not_of_jobs": ("not asked of this kind of work", "此类任务不适用"),
    "no_report": ("the session says nothing", "会话没有报告"),
    "no_processes": ("its processes are not seen", "看不到其进程"),
    "not_read": ("not read yet", "尚未读取"),
}
"""What a signal rests on."""

LOST: Mapping[str, tuple[str, str]] = {
    "variables": ("variables of kernel {name} ({path})", "内核 {name} 的变量（{path}）"),
    "cell": ("the cell that was running in {path}", "{path} 中正在运行的单元"),
    "terminals": ("{count} terminals", "{count} 个终端"),
    "document": ("{path}: not saved: {error}", "{path}：未保存：{error}"),
    "unknown": (
        "no report came from the session: what was not on disk is lost",
        "会话没有报告保存结果：未写入磁盘的内容已丢失",
    ),
}
"""What a session that is over has lost, a line each."""

HTTP_ERRORS: Mapping[str, tuple[str, str]] = {
    "invalid": ("the request can't be read", "无法读取请求"),
    "unauthorized": ("no valid token of the hub", "没有有效的 hub 令牌"),
    "not_allowed": ("not allowed", "不允许"),
    "not_found": ("no such thing here", "这里没有这一项"),
    "method_not_allowed": ("this can't be done here", "此处不支持该操作"),
    "too_large": ("too large", "内容过大"),
    "error": ("unexpected failure", "意外错误"),
}
"""What is wrong with a request that reached no handler's own check, by its code."""

HTTP_HINTS: Mapping[str, tuple[str, str]] = {
    "invalid": ("see /openapi.json for what may be sent", "可发送的内容见 /openapi.json"),
    "unauthorized": ("get one at /hub/token", "可在 /hub/token 获取"),
    "not_allowed": ("load the page again and repeat it, or sign in anew", "请刷新页面后重试，或重新登录"),
    "not_found": ("see /openapi.json for the addresses", "可用地址见 /openapi.json"),
    "method_not_allowed": ("the Allow header names what can be done", "Allow 头列出了可用方法"),
    "too_large": ("send at most 2 MiB", "请求不超过 2 MiB"),
    "error": ("nothing was changed; see the service's log", "未做任何修改；详见服务日志"),
}

_SIGNS = {"CNY": "¥", "USD": "$", "EUR": "€", "GBP": "£"}


def money(amount: str, currency: str) -> str:
    """An amount to the cent with its sign, `¥1,074.00`; with the currency's name where it has none."""
    try:
        shown = f"{Decimal(amount):,.2f}"
    except InvalidOperation:
        shown = amount
    sign = _SIGNS.get(currency)
    return f"{sign}{shown}" if sign else f"{shown} {currency}"


_PLACES = ("root", "team", "project", "pool", "pools", "node", "queue", "workload", "priority")
"""What `place` knows, each a word of WORDS."""


def pick(pair: tuple[str, str], lang: str) -> str:
    """The text of a pair in a language; English for one we don't have."""
    return pair[LANGUAGES.index(lang)] if lang in LANGUAGES else pair[0]


def say(code: str, lang: str, **facts: object) -> str:
    """The sentence of a code with its facts filled in. A fact it needs and doesn't get shows as a dash."""
    return pick(SENTENCES[code], lang).format_map(_Facts(facts))


def place(scope: str, lang: str) -> str:
    """A place of the quota tree, or a thing of the policy, in words; a rule's path as it stands in the policy."""
    level, _, name = scope.partition(" ")
    return word(WORDS, level, lang, name=name) if level in _PLACES else scope


def word(table: Mapping[str, tuple[str, str]], key: str, lang: str, **facts: object) -> str:
    """A word of a table, with its facts filled in; the key itself when the table hasn't got it."""
    return pick(table[key], lang).format_map(_Facts(facts)) if key in table else key


class _Facts(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return "—"


def best_language(accept: str | None, default: str = "en") -> str:
    """The language of an Accept-Language header that we have: its first known one, else `default`."""
    for part in (accept or "").split(","):
        tag = part.split(";")[0].strip().lower()
        if tag[:2] in LANGUAGES:
            return tag[:2]
    return default
