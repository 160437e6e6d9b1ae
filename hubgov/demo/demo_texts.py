"""What `hubgov demo` prints, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

DEMO: Mapping[str, tuple[str, str]] = {
    "up": ("JupyterHub with hubgov is up:  {url}", "JupyterHub 与 hubgov 已启动：  {url}"),
    "devices_simulated": (
        "Devices: SIMULATED ({why}). Every page says so.",
        "设备：模拟（{why}）。所有页面都会标明。",
    ),
    "devices_real": ("Devices: real, read through NVML.", "设备：真实 GPU，通过 NVML 读取。"),
    "isolation": ("Isolation: {text}", "隔离：{text}"),
    "isolation_root": (
        "each user has a system uid and a bubblewrap box of his own",
        "每个用户有独立的系统用户和 bubblewrap 沙箱",
    ),
    "isolation_userns": (
        "namespaces only: all users share this uid (run as root for a wall of uids)",
        "仅命名空间隔离：所有用户共用本用户（以 root 运行可获得独立 uid）",
    ),
    "isolation_none": (
        "NONE, single-user mode: bubblewrap can't be used here ({why}); one user only",
        "无，单用户模式：此处无法使用 bubblewrap（{why}），仅限一个用户",
    ),
    "fast": (
        "FAST CLOCK: {rate} seconds of policy time pass in one second.",
        "加速时钟：策略时间以 {rate} 倍速度流逝。",
    ),
    "sign_ins": ("Sign in as (passwords are shown this once):", "登录账号（密码仅显示这一次）："),
    "sign_ins_known": (
        "Sign in as amy, bo, lena or admin. Their passwords were shown before; --new-passwords makes new ones.",
        "可用账号 amy、bo、lena、admin。密码此前已显示；--new-passwords 可重新生成。",
    ),
    "amy": ("data scientist in team vision", "数据科学家，团队 vision"),
    "bo": ("data scientist in team nlp", "数据科学家，团队 nlp"),
    "lena": ("lead of both teams", "两个团队的负责人"),
    "admin": ("platform admin", "平台管理员"),
    "try": ("Try:", "试试："),
    "try1": (
        "as amy: choose One GPU, 1 h, Start. The status bar of Lab counts down; click it to extend.",
        "以 amy 登录：选择单卡、1 小时并启动。Lab 状态栏显示剩余时间，点击即可延长。",
    ),
    "try2": (
        "as amy and bo: take the GPUs of pool dev, then ask for one more: place, reason, when it starts.",
        "以 amy 和 bo 登录：占满 dev 池的 GPU，再申请一张，查看排队位置、原因和预计开始时间。",
    ),
    "try3": (
        "in a terminal:  {hubgov} login --url {url} --user amy;  {hubgov} list;  {hubgov} devices",
        "在终端中：  {hubgov} login --url {url} --user amy；  {hubgov} list；  {hubgov} devices",
    ),
    "stop": (
        "Stop all of it:  ./deploy/up --down --state {state}",
        "全部停止：  ./deploy/up --down --state {state}",
    ),
    "running": ("It was running already; nothing was changed.", "已在运行，未做更改。"),
    "running_new_passwords": (
        "It was running already and goes on; only the passwords are new, the old ones no longer work.",
        "已在运行并继续运行；仅密码已更换，旧密码不再有效。",
    ),
    "down": ("Stopped. The data stays in {state}.", "已停止。数据保留在 {state}。"),
    "own_hub": (
        "From the demo to your own hub or GPU box: hubgov init",
        "从演示到自己的 hub 或 GPU 机器：hubgov init",
    ),
    "not_running": ("Nothing of it was running.", "没有正在运行的进程。"),
    "starting": ("Starting JupyterHub and hubgov …", "正在启动 JupyterHub 与 hubgov …"),
}
