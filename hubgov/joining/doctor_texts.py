"""What `hubgov doctor` says, in English and Chinese: a sentence for each key of a line."""

from __future__ import annotations

from collections.abc import Mapping

COLOURS: Mapping[str, tuple[str, str]] = {
    "green": ("fine", "正常"),
    "amber": ("attention", "注意"),
    "red": ("broken", "故障"),
}

ICONS: Mapping[str, str] = {"green": "✓", "amber": "!", "red": "✗"}

LINES: Mapping[str, tuple[str, str]] = {
    "about": (
        "Check an installation of hubgov: each line with the command that mends it. It changes nothing.",
        "检查 hubgov 的安装：每行给出修复命令。不会修改任何内容。",
    ),
    "mend": ("    mend: {command}", "    修复：{command}"),
    "sum": ("{green} fine, {amber} need attention, {red} broken", "{green} 项正常，{amber} 项需注意，{red} 项故障"),
    "python": ("Python {version}", "Python {version}"),
    "python_old": (
        "Python {version} is too old; 3.11 or newer is needed",
        "Python {version} 过旧，需要 3.11 或更新",
    ),
    "jupyterhub": ("JupyterHub {version}, hubgov {hubgov}", "JupyterHub {version}，hubgov {hubgov}"),
    "jupyterhub_other": ("JupyterHub {version}; hubgov needs 6", "JupyterHub {version}，hubgov 需要 6"),
    "jupyterhub_none": ("JupyterHub isn't installed beside hubgov", "与 hubgov 同一环境中没有安装 JupyterHub"),
    "config": ("{path} joins hubgov", "{path} 已接入 hubgov"),
    "config_bad": ("the configuration can't be read ({path}): {why}", "配置无法读取（{path}）：{why}"),
    "config_not_joined": ("{path} doesn't call hubgov.setup(c)", "{path} 没有调用 hubgov.setup(c)"),
    "hub": ("the hub answers on port {port}", "hub 在端口 {port} 应答"),
    "hub_silent": ("the hub runs (pid {pid}) and doesn't answer", "hub 在运行（pid {pid}）但没有应答"),
    "hub_off": ("the hub doesn't run", "hub 没有运行"),
    "service": ("the service answers (pid {pid}, version {version})", "服务应答正常（pid {pid}，版本 {version}）"),
    "service_off": ("the service doesn't run; the hub starts it", "服务没有运行；由 hub 启动"),
    "service_silent": (
        "the hub runs, but no service answers on port {port}",
        "hub 在运行，但端口 {port} 没有服务应答",
    ),
    "service_version": (
        "the service runs version {running}, installed is {installed}",
        "服务运行的版本是 {running}，已安装的是 {installed}",
    ),
    "service_trouble": ("the service can't write: {why}", "服务无法写入：{why}"),
    "leader": ("process {pid} leads, epoch {epoch}", "进程 {pid} 为主，epoch {epoch}"),
    "leader_none": ("nobody leads: nothing is admitted or ended", "没有主进程：不会启动或结束任何任务"),
    "port": ("port {port} is the service's", "端口 {port} 归服务使用"),
    "port_shared": (
        "port {port} is the hub's own; the service needs another",
        "端口 {port} 被 hub 占用，服务需用其他端口",
    ),
    "port_taken": ("port {port} is held by another program", "端口 {port} 被其他程序占用"),
    "ledger": ("ledger {url}, at {revision}", "账本 {url}，版本 {revision}"),
    "ledger_trouble": ("the ledger {url} can't be read: {why}", "账本 {url} 无法读取：{why}"),
    "ledger_damaged": ("the ledger {url} is damaged: {why}", "账本 {url} 已损坏：{why}"),
    "ledger_none": (
        "there is no ledger yet ({url}); the first start makes it",
        "尚无账本（{url}）；首次启动时创建",
    ),
    "ledger_behind": (
        "the ledger is at {have}, not at {want}; the next start brings it there",
        "账本版本为 {have}，应为 {want}；下次启动时升级",
    ),
    "policy": ("the policy is valid and enforced, time zone {zone}", "策略有效并已执行，时区 {zone}"),
    "policy_bad": ("the policy has an error: {why}", "策略有错误：{why}"),
    "policy_none": ("there is no policy yet; the first start makes a sample", "尚无策略；首次启动时生成示例"),
    "policy_observe": ("the policy only observes: nothing is stopped", "策略仅观察：不会停止任何任务"),
    "devices": ("GPUs: {real} real, {simulated} simulated ({why})", "GPU：{real} 真实，{simulated} 模拟（{why}）"),
    "devices_simulated": (
        "GPUs: {real} real, {simulated} simulated ({why})",
        "GPU：{real} 真实，{simulated} 模拟（{why}）",
    ),
    "devices_none": ("GPUs: none ({why})", "GPU：无（{why}）"),
    "devices_hidden": (
        "GPUs: {nodes} device nodes are there, but the driver lists none ({why}); {simulated} simulated stand in",
        "GPU：存在 {nodes} 个设备节点，但驱动没有列出（{why}）；由 {simulated} 张模拟卡代替",
    ),
    "isolation_root": (
        "devices are enforced: each user has a uid and a box of his own",
        "设备强制隔离：每个用户有独立 uid 与沙箱",
    ),
    "isolation_userns": (
        "devices are enforced by user namespaces; all users share one uid",
        "设备通过用户命名空间强制隔离；所有用户共用一个 uid",
    ),
    "isolation_none": (
        "devices are ADVISORY: no box can be made ({why})",
        "设备为建议性（advisory）：无法建立沙箱（{why}）",
    ),
    "isolation_broken": ("no server can start: {why}", "服务器无法启动：{why}"),
    "isolation_spawner": (
        "devices are ADVISORY: {spawner} makes no boxes; a server is told its devices and could use others",
        "设备为建议性（advisory）：{spawner} 不提供沙箱；服务器仅被告知其设备，仍可使用其他设备",
    ),
    "proxy": ("proxy: {name}", "代理：{name}"),
    "proxy_other": ("proxy: {name}", "代理：{name}"),
    "proxy_old": (
        "{path} is older than 4 or the package of PyPI: pages that wait would die",
        "{path} 低于 4 或为 PyPI 版本：等待页面会中断",
    ),
    "proxy_none": ("no configurable-http-proxy is on PATH", "PATH 中没有 configurable-http-proxy"),
    "private_files": ("{path} and the token in it are private", "{path} 及其中的令牌为私有"),
    "folder_none": ("{path} isn't there yet; the first start makes it", "{path} 尚不存在；首次启动时创建"),
    "folder_anothers": (
        "{path} belongs to uid {uid}: not all could be looked at",
        "{path} 属于 uid {uid}：部分内容无法检查",
    ),
    "file_open": ("{path} is open to others (mode {mode})", "{path} 对他人开放（权限 {mode}）"),
    "cullers": (
        "{names} ends idle servers or kernels besides hubgov, without warning or receipt",
        "除 hubgov 外，{names} 也会回收空闲服务器或内核，且没有提醒与回执",
    ),
    "cullers_none": ("no other culler is configured", "没有配置其他回收程序"),
    "lab": ("JupyterLab's extension is there", "JupyterLab 扩展已安装"),
    "lab_missing": (
        "JupyterLab's extension is not whole: {what} is missing",
        "JupyterLab 扩展不完整：缺少 {what}",
    ),
    "clock": ("clock and time zone agree ({zone})", "时钟与时区正常（{zone}）"),
    "clock_behind": (
        "this machine's clock is {seconds} s behind the ledger's newest entry",
        "本机时钟比账本最新记录晚 {seconds} 秒",
    ),
    "clock_fast": (
        "policy time runs {rate} times as fast: for demonstrations only",
        "策略时间以 {rate} 倍运行：仅供演示",
    ),
    "probe_stale": ("no fresh reading of the devices of {names}", "{names} 的设备没有新的读数"),
    "disk": ("{free} MiB free", "剩余 {free} MiB"),
    "disk_low": ("only {free} MiB free at {path}", "{path} 仅剩 {free} MiB"),
    "disk_full": ("the disk of {path} is full ({free} MiB free)", "{path} 的磁盘已满（剩余 {free} MiB）"),
    "disk_network": (
        "{path} is on a network file system ({kind}); SQLite would lose data there",
        "{path} 位于网络文件系统（{kind}），SQLite 会丢失数据",
    ),
    "spawns": (
        "the hub starts {limit} servers at once, {attached} may wait attached",
        "hub 同时启动上限 {limit}，可附着等待 {attached}",
    ),
    "spawns_few": (
        "waiting spawns ({attached}) may take all {limit} starts that the hub allows at once",
        "等待中的启动（{attached}）可能占满 hub 允许的 {limit} 个并发",
    ),
    "named": ("named servers at the hub: {limit}", "hub 的命名服务器上限：{limit}"),
    "named_few": (
        "the hub allows {limit} named servers, the policy up to {most} sessions",
        "hub 只允许 {limit} 个命名服务器，策略允许最多 {most} 个会话",
    ),
    "groups": (
        "the policy's {count} groups are known, every user is in a team",
        "策略中的 {count} 个用户组均已知，所有用户都有团队",
    ),
    "groups_unknown": ("the hub knows no group {names}, which the policy names", "hub 没有策略中的用户组 {names}"),
    "groups_without": (
        "{count} users are in no team and can start nothing: {names}",
        "{count} 个用户不属于任何团队，无法启动：{names}",
    ),
    "groups_unseen": ("the hub's groups can't be read from here", "无法从此处读取 hub 的用户组"),
}
