"""What `hubgov init` says, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from hubgov.phrases import Phrases

INIT: Mapping[str, tuple[str, str]] = {
    "about": (
        "Join a JupyterHub: find its configuration, its groups and the devices, write a policy and a few lines. "
        "Shows what it would write; --apply writes it.",
        "接入 JupyterHub：查找其配置、用户组与设备，生成策略和几行配置。默认只显示，--apply 才写入。",
    ),
    "config": ("Configuration: {path}", "配置文件：{path}"),
    "config_new": ("Configuration: {path} (new)", "配置文件：{path}（新建）"),
    "hub_running": (
        "A hub runs with it (pid {pid}); it takes the change up at its next start.",
        "有 hub 正在使用它（pid {pid}）；重启后生效。",
    ),
    "hub_other_python": (
        "ATTENTION: that hub runs with {program}; install hubgov there and call this with its Python.",
        "注意：该 hub 使用 {program}；请在那里安装 hubgov，并用同一 Python 运行本命令。",
    ),
    "spawner": ("Spawner: {name}", "Spawner：{name}"),
    "advisory": (
        "It makes no boxes: devices are ADVISORY, told to each server and not enforced.",
        "该 spawner 不提供沙箱：设备为建议性（advisory），仅告知服务器，不强制。",
    ),
    "authenticator": ("Authenticator: {name}", "认证方式：{name}"),
    "devices_real": ("Devices: {count} real ({why})", "设备：{count} 张真实卡（{why}）"),
    "devices_simulated": (
        "Devices: 0 real, {count} SIMULATED ({why})",
        "设备：0 张真实卡，{count} 张模拟（{why}）",
    ),
    "groups": ("Groups that become teams: {names}", "用户组（将成为团队）：{names}"),
    "groups_none": (
        "The hub has no group: put users into the group gpu-users, else nobody can start anything.",
        "hub 没有用户组：请将用户加入 gpu-users 组，否则无人可以启动。",
    ),
    "groups_left_out": ("Left out, since no team can have it: {names}", "未采用（无法对应团队）：{names}"),
    "cullers": (
        "ATTENTION: {names} ends idle servers or kernels too, without a word; turn it off.",
        "注意：{names} 也会回收空闲服务器或内核，且不提示；请关闭。",
    ),
    "policy_new": ("Policy: {path} (new)", "策略：{path}（新建）"),
    "policy_kept": ("Policy: {path} (there already, kept)", "策略：{path}（已存在，保留）"),
    "state": ("Ledger and tokens: {path}", "账本与令牌：{path}"),
    "nothing": ("All is there already; nothing to write.", "已经接入，无需写入。"),
    "not_joined": (
        "{path} has no lines of hubgov; nothing to take away.",
        "{path} 中没有 hubgov 的配置，无需移除。",
    ),
    "dry": ("Nothing was written. To write it: {command}", "尚未写入。写入请运行：{command}"),
    "ask": ("Write it? [y/N] ", "写入吗？[y/N] "),
    "left": ("Nothing was written.", "未写入。"),
    "written": ("Written: {path}", "已写入：{path}"),
    "kept": ("As it was: {path}", "原文件备份：{path}"),
    "next": ("Restart the hub, then: {command}", "重启 hub，然后运行：{command}"),
    "removed_next": (
        "Restart the hub: it is as it was. The policy and the ledger stay where they are.",
        "重启 hub 后恢复原状。策略与账本保留在原处。",
    ),
    "unit": ("# A unit for systemd; install it yourself: {path}", "# systemd 单元，请自行安装：{path}"),
}

HELP: Mapping[str, tuple[str, str]] = {
    "config": ("the hub's configuration; found by itself where it can be", "hub 的配置文件；默认自动查找"),
    "policy": ("the policy file; beside the configuration by default", "策略文件；默认在配置文件旁"),
    "state": ("folder of ledger and tokens", "账本与令牌的目录"),
    "apply": ("write it", "写入"),
    "yes": ("without asking", "不询问"),
    "remove": ("take hubgov's lines out of the configuration", "从配置中移除 hubgov 的内容"),
    "simulated": ("simulated devices even where there are real ones", "即使有真实卡也使用模拟设备"),
    "timezone": ("time zone of the policy; the machine's own by default", "策略的时区；默认为本机时区"),
    "unit": ("also print a unit for systemd", "同时打印 systemd 单元"),
    "json": ("print one JSON document", "输出一个 JSON 文档"),
    "lang": ("language of what is printed here", "输出语言"),
    "help": ("show this help message and exit", "显示本帮助并退出"),
}

_MESSAGES = Phrases(
    (
        (
            "no {name} in this folder, in /etc/jupyterhub or of a hub that runs",
            "当前目录、/etc/jupyterhub 及运行中的 hub 都没有 {name}",
        ),
        ("{path} is a link; it is not written through", "{path} 是链接，不会经由链接写入"),
        ("{path} is no file", "{path} 不是文件"),
        ("{path} is no folder", "{path} 不是目录"),
        ("{path} belongs to uid {uid}, not to you", "{path} 属于 uid {uid}，不属于你"),
        ("{path} is larger than 4 MiB", "{path} 超过 4 MiB"),
        (
            "the marks # >>> hubgov >>> and # <<< hubgov <<< don't pair",
            "标记 # >>> hubgov >>> 与 # <<< hubgov <<< 不成对",
        ),
        ("{path} was changed meanwhile", "{path} 在此期间被修改"),
        (
            "{path} calls hubgov.setup(c) already, outside of a block of `hubgov init`",
            "{path} 已在 `hubgov init` 的区块之外调用了 hubgov.setup(c)",
        ),
        ("JupyterHub.internal_ssl can't be used with hubgov", "hubgov 不支持 JupyterHub.internal_ssl"),
        ("the hub could not read the new {name}: {why}", "hub 无法读取新的 {name}：{why}"),
        ("{path} is there already", "{path} 已存在"),
    )
)

_HINTS = Phrases(
    (
        (
            "name it: --config FILE; a new one is made with --config ./{name}",
            "请指定：--config FILE；用 --config ./{name} 可新建",
        ),
        ("name its target: --config {path}", "请指定其目标：--config {path}"),
        ("name a file with --config", "请用 --config 指定文件"),
        ("make it, or name another file with --config", "请创建该目录，或用 --config 指定其他文件"),
        ("run this as its owner, or name another file", "请以其所有者运行，或指定其他文件"),
        ("name the hub's configuration with --config", "请用 --config 指定 hub 的配置"),
        ("leave one of each, or none", "各保留一个，或都删除"),
        ("call this again", "请重新运行"),
        ("take that line out, or leave it as it is: the hub is joined", "请删除该行，或保持现状：hub 已接入"),
        ("set it to False first", "请先设为 False"),
        ("mend the configuration first: the hub can't read it either", "请先修复配置：hub 也无法读取"),
        ("nothing was written; add the lines by hand where they fit", "未写入任何内容；请手工加入这些行"),
        ("name another, or remove it", "请另选文件，或删除它"),
    )
)


def told(message: str, hint: str, lang: str) -> tuple[str, str]:
    """(message, hint) in a language; as they were raised where there are no words for them."""
    if lang != "zh":
        return message, hint
    return _MESSAGES.say(message) or message, _HINTS.say(hint) or hint
