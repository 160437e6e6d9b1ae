"""What the command line itself says, in English and Chinese; sentences about work come from the service."""

from __future__ import annotations

from collections.abc import Mapping

from hubgov.texts import pick

TEXTS: Mapping[str, tuple[str, str]] = {
    "about": (
        "GPU governance: what runs, why something waits, who holds which device until when.",
        "GPU 治理：什么在运行、为什么在等、谁占用哪张卡到何时。",
    ),
    "commands": ("Commands", "命令"),
    "example": ("Example:", "示例："),
    "environment": (
        "HUBGOV_URL and HUBGOV_TOKEN name the service and who asks; without them it is what `hubgov login` kept. "
        "Exit codes: 0 done, 1 failed, 2 usage, 3 denied, 4 still waiting, 5 service unreachable, "
        "6 needs approval.",
        "HUBGOV_URL 与 HUBGOV_TOKEN 指定服务与身份；未设置时使用 hubgov login 保存的登录。"
        "退出码：0 完成，1 失败，2 用法错误，3 被拒绝，4 仍在等待，5 服务不可达，6 需要审批。",
    ),
    "hint": ("hint: {what}", "提示：{what}"),
    "usage": ("{message}", "用法错误：{message}"),
    "no_verb": ("there is no command {verb!r}.", "没有命令 {verb!r}。"),
    "near": (" Did you mean {word!r}?", "是否想用 {word!r}？"),
    "until": ("{at} · {left} left", "{at} · 剩余 {left}"),
    "until_with_grace": ("{at}, grace to {grace} · {left} left", "{at}，宽限至 {grace} · 剩余 {left}"),
    "holder": ("{who} (end {end})", "{who}（{end} 到期）"),
    "ago": ("{span} ago", "{span} 前"),
    "stale": ("stale, {span} ago", "已过时，{span} 前"),
    "none_workloads": (
        "No workloads here yet. `hubgov queues` shows where work can go.",
        "还没有任务。用 hubgov queues 查看可用队列。",
    ),
    "left_out": (
        "Left out for lack of room: {columns}. A wider terminal or a pipe has them.",
        "窗口较窄，未显示：{columns}。更宽的终端或管道可显示全部。",
    ),
    "nothing": ("Nothing here.", "没有内容。"),
    "more": ("{more} more: --limit {total}", "还有 {more} 个：--limit {total}"),
    "quota_line": ("Quota of team {team}: {rows}", "团队 {team} 配额：{rows}"),
    "quota_part": (
        "{pool} {flavor} {used} of {guaranteed} used, {available} available",
        "{pool} {flavor} 已用 {used} / {guaranteed}，可用 {available}",
    ),
    "quota_borrowed": (" ({borrowed} borrowed)", "（借用 {borrowed}）"),
    "no_limit": ("no limit", "不限"),
    "simulated": ("SIMULATED", "模拟"),
    "simulated_left_out": (
        "Usage of simulated devices is left out; --include-simulated counts it.",
        "未计入模拟设备的用量；使用 --include-simulated 计入。",
    ),
    "cost_period": ("{start} to {end}", "{start} 至 {end}"),
    "total": ("Total", "合计"),
    "simulated_why": ("SIMULATED: no card is behind these numbers.", "模拟：以下数据并非真实显卡。"),
    "yes": ("yes", "是"),
    "no": ("no", "否"),
    "next": ("next: {steps}", "可选：{steps}"),
    "costs": ("Estimated cost: {cost}", "预计费用：{cost}"),
    "latest_start": ("Starts by {at} as things stand now.", "按当前情况，{at} 前开始。"),
    "place": ("Place in line: {position}", "排队位置：{position}"),
    "still_waiting": ("{id} still waits after {span}: {why}", "{id} 在 {span} 后仍在等待：{why}"),
    "not_over": ("{id} is not over after {span}: {why}", "{id} 在 {span} 后仍未结束：{why}"),
    "hint_logs": ("hubgov logs {id} -f", "hubgov logs {id} -f"),
    "submitted": ("{id}: {headline}", "{id}：{headline}"),
    "next_attempt": ("{id}, attempt {attempt}", "{id}，第 {attempt} 次运行"),
    "log_gap": ("{bytes} bytes were left out here{why}", "此处略去 {bytes} 字节{why}"),
    "hint_why": ("hubgov why {id}", "hubgov why {id}"),
    "cancelled": ("{id}: {state}", "{id}：{state}"),
    "kept": ("{id}: kept until {until}; keeps left: {left}", "{id}：保留至 {until}，剩余保留次数 {left}"),
    "was_idle": ("idle: {what}", "空闲依据：{what}"),
    "stop_ordered": ("{id} stops at {at}; its owner is told", "{id} 将于 {at} 停止；已告知其所有者"),
    "decided": ("{id}: {state}", "{id}：{state}"),
    "decided_until": ("{id}: {state}, until {at}", "{id}：{state}，至 {at}"),
    "of_team": ("team {team}", "团队 {team}"),
    "without_end": ("without end", "无期限"),
    "lost": ("lost: {what}", "丢失：{what}"),
    "nothing_lost": ("Nothing was lost.", "没有丢失内容。"),
    "held_now": ("Queue {queue} is on hold: {reason}", "队列 {queue} 已暂停：{reason}"),
    "closed_now": (
        "Queue {queue} is on hold and closed for new work: {reason}",
        "队列 {queue} 已暂停且不接受新任务：{reason}",
    ),
    "released_now": ("Queue {queue} goes on.", "队列 {queue} 已恢复。"),
    "drained_now": ("Nothing new starts on {node}; what runs goes on.", "{node} 不再启动新任务，运行中的继续。"),
    "undrained_now": ("{node} takes work again.", "{node} 重新接受任务。"),
    "signed_in": ("Signed in as {user} at {url} until {until}.", "已以 {user} 登录 {url}，有效期至 {until}。"),
    "password": ("Password of {user} at {url}: ", "{url} 上 {user} 的密码："),
    "for_ever": ("it is revoked", "被撤销"),
    "policy_fine": ("{file}: no errors", "{file}：没有错误"),
    "policy_same": (
        "The file says what is in force (version {version}).",
        "文件与现行策略一致（版本 {version}）。",
    ),
    "policy_no_edits": (
        "No value differs from version {version}; only the text does.",
        "与版本 {version} 相比没有值变化，仅文字不同。",
    ),
    "policy_head": (
        "# version {version}, applied {at} by {by}",
        "# 版本 {version}，{by} 于 {at} 应用",
    ),
    "policy_ask": ("Put this in force now? [y/N] ", "现在应用？[y/N] "),
    "policy_left": ("Nothing was applied.", "未应用。"),
    "policy_applied": ("Version {version} is in force.", "版本 {version} 已生效。"),
}

COLUMNS: Mapping[str, tuple[str, str]] = {
    "delays": ("DELAYS", "会推迟"),
    "id": ("ID", "编号"), "name": ("NAME", "名称"), "state": ("STATE", "状态"), "position": ("POSITION", "位置"),
    "why": ("WHY", "原因"), "device": ("DEVICE", "设备"), "util": ("UTIL", "利用率"), "mem": ("MEM", "显存"),
    "stops_at": ("LEASE ENDS", "租约到期"), "left": ("LEFT", "剩余"), "cost": ("COST", "费用"),
    "owner": ("OWNER", "所有者"), "team": ("TEAM", "团队"), "project": ("PROJECT", "项目"),
    "environment": ("ENVIRONMENT", "环境"), "queue": ("QUEUE", "队列"), "kind": ("KIND", "类型"),
    "gpus": ("GPUS", "GPU 数"), "flavor": ("FLAVOR", "卡型"), "submitted": ("SUBMITTED", "提交时间"),
    "started": ("STARTED", "开始时间"), "ended": ("ENDED", "结束时间"), "waited": ("WAITED", "等待"),
    "headline": ("HEADLINE", "说明"), "evictions": ("EVICTIONS", "被收回次数"), "attempt": ("ATTEMPT", "尝试"),
    "extensions_left": ("EXTENSIONS LEFT", "剩余延长次数"), "latest_start": ("STARTS BY", "预计开始不晚于"),
    "end_reason": ("END REASON", "结束原因"), "exit_code": ("EXIT CODE", "退出码"), "url": ("URL", "地址"),
    "signal": ("SIGNAL", "信号"), "command": ("COMMAND", "命令"), "cwd": ("FOLDER", "目录"),
    "env": ("VARIABLES", "环境变量"),
    "note": ("NOTE", "备注"), "memory": ("MEMORY", "显存请求"),
    "pool": ("POOL", "资源池"), "guaranteed": ("GUARANTEED", "保障"), "used": ("USED", "已用"),
    "borrowed": ("BORROWED", "借用"), "lent": ("LENT", "借出"), "available": ("AVAILABLE", "可用"),
    "borrow": ("BORROW", "可借上限"), "lend": ("LEND", "可借出"), "window": ("WINDOW", "时段"),
    "next_change": ("NEXT CHANGE", "下次变化"), "workload": ("WORKLOAD", "任务"), "holder": ("HOLDER", "占用者"),
    "since": ("SINCE", "自"), "until": ("LEASE ENDS", "租约到期"), "isolation": ("ISOLATION", "隔离"),
    "reading": ("READING", "读数"), "engine": ("ENGINE", "引擎"), "devices": ("DEVICES", "设备数"),
    "free": ("FREE", "空闲"), "placement": ("PLACEMENT", "放置"), "kinds": ("KINDS", "类型"),
    "pools": ("POOLS", "资源池"), "class": ("CLASS", "级别"), "priority": ("PRIORITY", "优先级"),
    "order": ("ORDER", "次序"), "lease": ("LEASE", "默认时长"), "max_lease": ("MAX LEASE", "最长时长"),
    "held": ("HELD", "暂停"), "pending": ("WAITING", "排队"), "running": ("RUNNING", "运行"),
    "code": ("CODE", "代码"), "need": ("NEED", "需要"), "have": ("HAVE", "剩余"), "limit": ("LIMIT", "上限"),
    "unit": ("UNIT", "单位"), "where": ("WHERE", "范围"), "held_by": ("HELD BY", "占用者"),
    "frees_at": ("CHANGES BY", "最迟变化"), "outcome": ("OUTCOME", "结论"), "by": ("BY", "延长"),
    "expires_at": ("NEW END", "新的到期时间"), "requested_by": ("REQUESTED BY", "申请人"),
    "reason": ("REASON", "理由"), "decided_by": ("DECIDED BY", "审批人"), "at": ("AT", "时间"),
    "actor": ("ACTOR", "操作者"), "event": ("EVENT", "事件"), "record": ("RECORD", "对象"), "from": ("FROM", "原"),
    "to": ("TO", "现"), "path": ("PATH", "路径"), "bytes": ("BYTES", "字节"), "saved_at": ("SAVED AT", "保存时间"),
    "gpu_hours": ("GPU HOURS", "GPU 小时"), "lost": ("LOST", "丢失"), "rule": ("RULE", "规则"),
    "user": ("USER", "用户"), "day": ("DAY", "日期"), "list_cost": ("LIST COST", "目录价费用"),
    "discount": ("DISCOUNT", "折扣"), "credited": ("CREDITED", "已免收"),
    "borrowed_hours": ("BORROWED HOURS", "借用小时"), "failed_hours": ("FAILED HOURS", "启动失败小时"),
    "overhead_hours": ("OVERHEAD HOURS", "开销小时"),
    "sign": ("SIGN", "迹象"), "level": ("LEVEL", "状态"), "evidence": ("EVIDENCE", "依据"),
    "last_busy": ("LAST BUSY", "最近活动"), "age": ("AGE", "时效"), "idle_phase": ("IDLE", "空闲状态"),
    "idle_deadline": ("IDLE DEADLINE", "空闲期限"), "keeps_left": ("KEEPS LEFT", "剩余保留次数"),
    "needs": ("NEEDS A YES OF", "待批准人"),
}  # fmt: skip

OUTCOMES: Mapping[str, tuple[str, str]] = {
    "granted": ("can start", "可启动"),
    "waiting": ("waiting", "排队中"),
    "refused": ("refused", "已拒绝"),
    "needs_approval": ("needs approval", "需要审批"),
}

IDLE_PHASES: Mapping[str, tuple[str, str]] = {
    "active": ("no", "否"),
    "suspect": ("yes, only observed", "是，仅观察"),
    "asked": ("yes, owner asked", "是，已询问"),
    "kept": ("kept", "已保留"),
    "grace": ("yes, about to stop", "是，即将停止"),
}

DOCUMENTS: Mapping[str, tuple[str, str]] = {
    "saved": ("saved", "已保存"),
    "not_saved": ("not saved", "未保存"),
}
"""What became of an open document, by its outcome."""

UNITS: Mapping[str, tuple[str, str]] = {
    "gpus": ("GPUs", "张 GPU"),
    "seconds": ("time", "时间"),
    "workloads": ("sessions", "个会话"),
    "cpus": ("CPUs", "个 CPU"),
    "mib": ("MiB", "MiB"),
    "pending": ("waiting requests", "个排队请求"),
    "times": ("times", "次"),
    "nodes": ("nodes", "个节点"),
}

FAILURES: Mapping[str, tuple[str, str]] = {
    "bad_span": (
        "{option}: {value!r} is not a duration; write 90s, 30m, 4h, 2d or 1h30m",
        "{option}：{value!r} 不是时长；请写 90s、30m、4h、2d 或 1h30m",
    ),
    "bad_memory": (
        "{option}: {value!r} is not a memory size; write 512MiB, 80GiB or 1TiB",
        "{option}：{value!r} 不是显存大小；请写 512MiB、80GiB 或 1TiB",
    ),
    "bad_gpus": (
        "--gpus: {value!r} is not a number of GPUs; write 1, 0.25 or 1,2,4",
        "--gpus：{value!r} 不是 GPU 数量；请写 1、0.25 或 1,2,4",
    ),
    "bad_pair": ("{option}: {value!r} is not of the form name=value", "{option}：{value!r} 不是 名称=值 的形式"),
    "bad_word": ("{option}: {value!r} is none of {known}", "{option}：{value!r} 不在 {known} 之中"),
    "bad_number": (
        "{option}: {value!r} is out of bounds ({least} to {most})",
        "{option}：{value!r} 超出范围（{least} 到 {most}）",
    ),
    "not_text": ("{value!r} is not text in UTF-8", "{value!r} 不是 UTF-8 文本"),
    "password_not_text": ("the password is not text in UTF-8", "密码不是 UTF-8 文本"),
    "no_password": (
        "there is no terminal to ask for the password",
        "没有可用于输入密码的终端",
    ),
    "unreachable": ("{url} does not answer: {why}", "{url} 无响应：{why}"),
    "away": ("{url} is away (status {status})", "{url} 暂不可用（状态码 {status}）"),
    "not_hubgov": (
        "what answers at {url} is not hubgov (status {status})",
        "{url} 的应答不是 hubgov（状态码 {status}）",
    ),
    "no_service": ("no hubgov service is known here", "不知道 hubgov 服务在哪里"),
    "no_token": ("not signed in at {url}", "尚未登录 {url}"),
    "login_readable": (
        "{file} can be read by others; the token in it is not used",
        "{file} 可被他人读取，不使用其中的令牌",
    ),
    "login_unreadable": ("{message}", "登录文件 {file} 无法读取"),
    "wrong_password": ("the hub did not accept user and password", "hub 未接受用户名和密码"),
    "no_access": ("{message}", "hub 未给出 hubgov 的令牌：{message}"),
    "no_file": ("{file} can't be read: {why}", "无法读取 {file}：{why}"),
    "not_utf8": (
        "{file}:{line}: not_utf8: the file is not UTF-8 text",
        "{file}:{line}: not_utf8: 文件不是 UTF-8 文本",
    ),
    "bad_url": ("{message}", "地址无效：{message}"),
    "bad_name": ("{message}", "名称无效：{message}"),
    "bad_answer": ("{message}", "服务的应答格式不符：{message}"),
    "unauthorized": ("{message}", "令牌无效或已过期：{message}"),
    "unavailable": ("{message}", "服务暂不可用：{message}"),
}

HINTS: Mapping[str, tuple[str, str]] = {
    "bad_span": ("{option} 2h", "{option} 2h"),
    "bad_memory": ("{option} 20GiB", "{option} 20GiB"),
    "bad_gpus": ("--gpus 1", "--gpus 1"),
    "bad_pair": ("{option} net=ib", "{option} net=ib"),
    "bad_word": ("choose one of them", "请从中选择"),
    "bad_number": ("{option} {least}", "{option} {least}"),
    "not_text": ("type it anew", "请重新输入"),
    "password_not_text": (
        "give it in UTF-8, as the hub's sign-in page would take it",
        "请使用 UTF-8，与 hub 登录页所接受的一致",
    ),
    "bad_url": ("such as http://127.0.0.1:8000/services/hubgov", "例如 http://127.0.0.1:8000/services/hubgov"),
    "no_password": ("--password-stdin reads it from stdin", "用 --password-stdin 从标准输入读取"),
    "unreachable": (
        "what runs goes on; try again in a moment, or check HUBGOV_URL",
        "运行中的任务不受影响；稍后重试，或检查 HUBGOV_URL",
    ),
    "away": ("what runs goes on; try again in a moment", "运行中的任务不受影响；请稍后重试"),
    "not_hubgov": ("check HUBGOV_URL", "检查 HUBGOV_URL"),
    "no_service": (
        "hubgov login --url URL, or set HUBGOV_URL and HUBGOV_TOKEN",
        "hubgov login --url URL，或设置 HUBGOV_URL 和 HUBGOV_TOKEN",
    ),
    "no_token": ("hubgov login --url {url}, or set HUBGOV_TOKEN", "hubgov login --url {url}，或设置 HUBGOV_TOKEN"),
    "login_readable": ("chmod 600 {file}, or hubgov login again", "chmod 600 {file}，或重新 hubgov login"),
    "login_unreadable": ("hubgov login writes it anew", "hubgov login 会重新写入"),
    "wrong_password": ("try again", "请重试"),
    "no_access": ("ask an admin of the hub for access to the service", "请 hub 管理员授予访问权限"),
    "no_file": ("name a file that is there, or - for stdin", "请给出存在的文件，或用 - 表示标准输入"),
    "not_utf8": ("save it as UTF-8", "请另存为 UTF-8"),
    "unauthorized": ("hubgov login", "hubgov login"),
}


def text(key: str, lang: str, **facts: object) -> str:
    """A sentence with its facts."""
    return fill(TEXTS[key], lang, facts)


def fill(pair: tuple[str, str], lang: str, facts: Mapping[str, object]) -> str:
    """The text of a pair with its facts; one that is missing shows as a dash."""
    return pick(pair, lang).format_map(_Facts(facts))


class _Missing:
    def __repr__(self) -> str:
        return "—"


class _Facts(dict[str, object]):
    def __missing__(self, key: str) -> object:
        return _Missing()
