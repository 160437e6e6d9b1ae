"""The words of the hub's own pages and of a spawn's progress, in English and Chinese.

Sentences about decisions aren't here: they come rendered from the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from hubgov import texts
from hubgov.wire import Workload

COOKIE = "hubgov_lang"

PAGE: Mapping[str, tuple[str, str]] = {
    # every page
    "home": ("Home", "主页"),
    "token": ("Token", "令牌"),
    "admin": ("Admin", "管理"),
    "login": ("Login", "登录"),
    "logout": ("Logout", "退出"),
    "other_language": ("中文", "English"),
    "simulated": ("SIMULATED", "模拟"),
    "simulated_why": ("No card is behind these numbers.", "以下数据并非真实显卡。"),
    # progress and its page
    "requested": ("Server requested", "已提交请求"),
    "queue_place": (
        "Place {position} in queue {queue}. {headline}",
        "在队列 {queue} 中排第 {position} 位。{headline}",
    ),
    "latest_start": ("Starts by {at} as things stand now.", "按当前情况，{at} 前开始。"),
    "granted": (
        "Granted: {gpus} × {flavor}. The server is starting.",
        "已获准：{flavor} × {gpus}。服务器正在启动。",
    ),
    "granted_cpu": ("Granted. The server is starting.", "已获准。服务器正在启动。"),
    "last_stopping": (
        "The last session is still stopping; this one follows by itself.",
        "上一个会话仍在停止，本次随后自动开始。",
    ),
    "starting_title": ("Your server is starting", "服务器正在启动"),
    "starting_kept": (
        "You are redirected when it is ready. If it has to wait longer, this page leads to the waiting page; "
        "your place is kept.",
        "就绪后自动跳转。若需等待更久，将转到排队页面，排队位置会保留。",
    ),
    "log": ("Event log", "事件记录"),
    "cancel": ("Cancel", "取消"),
    "cancelling": ("Cancelling", "正在取消"),
    "cancelled": ("Cancelled.", "已取消。"),
    "not_cancelled": ("Not cancelled: ", "未取消："),
    "offline": (
        "Connection lost. Your place is kept on the server; this page retries by itself.",
        "连接中断。排队位置保留在服务器端，本页会自动重试。",
    ),
    # why a spawn ended
    "in_queue": (
        "You are in the queue. The server starts by itself when it is your turn; you may close this page.",
        "正在排队。轮到时服务器会自动启动，可以关闭本页。",
    ),
    "waiting_page": ("Waiting page", "排队页面"),
    "refused_next": ("You can: {steps}.", "可选操作：{steps}。"),
    "away": (
        "The service that grants GPUs does not answer, so nothing was started. Running servers go on. "
        "Try again in a minute.",
        "GPU 配额服务没有响应，未启动任何内容。运行中的服务器不受影响。请一分钟后重试。",
    ),
    "still_stopping": (
        "The last session of this server is still stopping. Its devices are free in a minute; start again then.",
        "该服务器的上一个会话仍在停止，设备将在一分钟内释放，之后可重新启动。",
    ),
    "over_meanwhile": ("This request is over. {headline}", "该请求已结束。{headline}"),
    "too_slow": (
        "The server did not start within {seconds} s. Nothing was charged.",
        "服务器未能在 {seconds} 秒内启动，不计费。",
    ),
    "open_ticket": (
        "This server waits in the queue as {id}. Cancel that first, then rename.",
        "该服务器正在排队（{id}）。请先取消排队再改名。",
    ),
    # the form
    "form_title": ("Server options", "服务器选项"),
    "start": ("Start", "启动"),
    "for_user": ("For {user}", "用户 {user}"),
    "profile": ("Profile", "配置"),
    "time": ("Time", "时长"),
    "project": ("Project", "项目"),
    "hours": ("{n} h", "{n} 小时"),
    "custom": ("Other", "其他"),
    "minutes": ("minutes", "分钟"),
    "at_most": ("at most {span}", "最长 {span}"),
    "cards": ("{gpus} × {flavor}", "{flavor} × {gpus}"),
    "any_card": ("any card", "任意卡型"),
    "no_gpu": ("no GPU", "无 GPU"),
    "memory": ("{size} GPU memory", "{size} 显存"),
    "free": ("free now {free}/{total}", "空闲 {free}/{total}"),
    "starts_now": ("starts now", "可立即启动"),
    "waits": ("waits", "需排队"),
    "waits_until": ("waits, starts by {at} as things stand", "需排队，按当前情况 {at} 前开始"),
    "per_hour": ("{price} per hour", "每小时 {price}"),
    "no_charge": ("no charge", "不计费"),
    "not_possible": ("not possible", "不可用"),
    "this_request": ("This request", "本次请求"),
    "sum": ("{gpus} GPU × {span} = {total} GPU-h", "{gpus} 张 GPU × {span} = {total} GPU 小时"),
    "too_long": ("more than the {span} that queue {queue} allows", "超过队列 {queue} 允许的 {span}"),
    "you": ("You: {own}", "本人：{own}"),
    "team_quota": (
        "Team {team}: {used} of {guaranteed} guaranteed, {borrowed} borrowed ({flavor}, pool {pool})",
        "团队 {team}：保障 {guaranteed}，已用 {used}，借用 {borrowed}（{flavor}，资源池 {pool}）",
    ),
    "more_refused": ("{n} more are not possible for you.", "另有 {n} 个配置不可用。"),
    "empty": (
        "You are in no team yet, so there is nothing to start here. Ask an administrator of the hub to add you to "
        "the group of your team, then load this page again.",
        "你还不属于任何团队，因此无法启动。请 hub 管理员将你加入团队对应的用户组，然后刷新本页。",
    ),
    "replaces": (
        "{id} waits in the queue for this server. What you choose here takes its place; asking for no more of "
        "anything keeps its position.",
        "该服务器已有请求 {id} 在排队。在此提交会替换它；若各项都不超过原请求，则保留原有位置。",
    ),
    "no_profiles": (
        "The policy offers no profile for notebooks yet. Ask an administrator to add one under spawn_profiles.",
        "策略尚未提供笔记本配置。请管理员在 spawn_profiles 中添加。",
    ),
    "form_offline": (
        "Availability is unknown: the service that grants GPUs does not answer. Running servers go on. "
        "Load this page again in a minute.",
        "无法获知空闲情况：GPU 配额服务没有响应。运行中的服务器不受影响。请一分钟后重新加载。",
    ),
    # the page of a server that isn't running, and the receipt
    "queue_title": ("You are in the queue", "正在排队"),
    "failed_title": ("The server was not started", "服务器未启动"),
    "stopped_title": ("The server is not running", "服务器未运行"),
    "stopped_named": ("Server {server}", "服务器 {server}"),
    "try_again": ("Try again", "重试"),
    "start_server": ("Start a new session", "启动新会话"),
    "restarts": ("It is started again by itself in a moment.", "稍后将自动重新启动。"),
    "ended_title": ("Session ended {at} — {reason}", "会话已于 {at} 结束——{reason}"),
    "limit_detail": (" ({span}, queue {queue})", "（{span}，队列 {queue}）"),
    "saved": ("Saved documents", "已保存的文档"),
    "saved_at": ("saved {at}", "{at} 已保存"),
    "none_saved": ("No open document was saved.", "没有保存打开的文档。"),
    "was_idle": ("Why it counted as idle", "空闲依据"),
    "lost": ("Lost", "未保存"),
    "nothing_lost": ("Nothing was lost.", "没有丢失内容。"),
    "files_kept": ("Files in your home are kept.", "主目录中的文件会保留。"),
    "request": ("Request", "请求"),
    "of_project": ("project {project}", "项目 {project}"),
    "of_queue": ("queue {queue}", "队列 {queue}"),
    "returned": ("GPU returned", "GPU 归还"),
    "not_returned": ("not yet: a process is still on it", "尚未归还：仍有进程占用"),
    "used": ("Used", "用时"),
    "gpu_hours": ("{hours} GPU-h", "{hours} GPU 小时"),
    "past_end_free": (" (time past the end is free)", "（到期后的时间不计费）"),
    "cost": ("Cost", "费用"),
    "exit": ("Exit code {code}", "退出码 {code}"),
    "resume": ("Resume", "继续"),
    "resume_note": (
        "Same request; the saved documents open again. Variables do not come back.",
        "使用相同的请求并重新打开已保存的文档，变量不会恢复。",
    ),
    # home
    "place": ("place {position} in queue {queue}", "队列 {queue} 第 {position} 位"),
    "ends_at": ("ends {at}", "{at} 到期"),
    "stops_at": ("stops {at}", "{at} 停止"),
    "so_far": ("{cost} so far", "目前费用 {cost}"),
    "open_server": ("Open my server", "打开我的服务器"),
    "start_my_server": ("Start my server", "启动我的服务器"),
    "stop_my_server": ("Stop my server", "停止我的服务器"),
    "named_servers": ("Named servers", "命名服务器"),
    "server_name": ("Name", "名称"),
    "last_activity": ("Last activity", "最近活动"),
    "actions": ("Actions", "操作"),
    "add_server": ("Add a server", "新增服务器"),
    "new_name": ("name of the new server", "新服务器名称"),
    "stop": ("stop", "停止"),
    "start_named": ("start", "启动"),
    "delete": ("delete", "删除"),
    "never": ("Never", "从未"),
    # sign-in and errors
    "sign_in": ("Sign in", "登录"),
    "username": ("Username:", "用户名："),
    "password": ("Password:", "密码："),
    "show_password": ("Show password", "显示密码"),
    "hide_password": ("Hide password", "隐藏密码"),
    "insecure": (
        "This hub is reached over HTTP without encryption. Its administrator should enable HTTPS.",
        "当前通过未加密的 HTTP 访问该 hub，管理员应启用 HTTPS。",
    ),
    "wrong_password": ("Invalid username or password", "用户名或密码错误"),
    "not_found": ("There is no such page.", "没有该页面。"),
    "no_access": (
        "There is nothing here that you may see. Ask the owner or an administrator if you should.",
        "此处没有可访问的内容。如需访问，请联系所有者或管理员。",
    ),
    "not_found_status": ("Not Found", "未找到"),
    "forbidden": ("Forbidden", "禁止访问"),
    "unavailable": ("Service Unavailable", "服务不可用"),
    "server_error": ("Internal Server Error", "服务器内部错误"),
    # a server that stops
    "stopping_title": ("Your server is stopping", "服务器正在停止"),
    "stopping_then": ("You can start it again when it has stopped.", "停止后可重新启动。"),
}


HUB_SAYS: Mapping[str, str] = {
    "Invalid username or password": "wrong_password",
    "No access to resources or resources not found": "no_access",
    "Not Found": "not_found_status",
    "Forbidden": "forbidden",
    "Service Unavailable": "unavailable",
    "Internal Server Error": "server_error",
}
"""Everyday sentences of the hub itself, and what they are here."""


def say(key: str, lang: str, **facts: object) -> str:
    """A text of the table with its facts."""
    return texts.pick(PAGE[key], lang).format(**facts)


def clock(at: str | None, zone: str, *, now: str | None = None, seconds: bool = False) -> str:
    """An RFC 3339 time as the wall clock of a zone: `18:30`, on another day `03-02 18:30`; a dash for none."""
    if at is None:
        return "—"
    place = _zone(zone)
    local = datetime.fromisoformat(at).astimezone(place)
    today = datetime.fromisoformat(now).astimezone(place).date() if now else local.date()
    day = "" if local.date() == today else "%m-%d "
    return local.strftime(day + ("%H:%M:%S" if seconds else "%H:%M"))


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError):  # one that this machine hasn't got: a time in UTC beats no page
        return UTC


def held(workload: Workload, lang: str) -> str:
    """What a workload holds, or held: `1 × A100 (box/0, box/1)`, `no GPU`."""
    if not workload.gpus:
        return say("no_gpu", lang)
    cards = say("cards", lang, gpus=number(workload.gpus), flavor=workload.flavor or say("any_card", lang))
    devices = ", ".join(f"{device.node}/{device.index}" for device in workload.devices)
    return f"{cards} ({devices})" if devices else cards


def money(value: Mapping[str, Any] | None, times: float = 1) -> str:
    """An amount with its sign and two decimals, `¥74.00`; a dash when it isn't known. Multiplied exactly."""
    if value is None:
        return "—"
    return texts.money(str(Decimal(value["amount"]) * Decimal(str(times))), str(value["currency"]))


def number(value: float) -> str:
    """A number with at most three decimals and none that says nothing: `4`, `0.25`."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def language(handler: Any) -> str:
    """The reader's language: the `hubgov_lang` cookie, else Accept-Language, else English."""
    request = getattr(handler, "request", None)
    if request is None:
        return "en"
    asked = handler.get_cookie(COOKIE, "")
    return asked if asked in texts.LANGUAGES else texts.best_language(request.headers.get("Accept-Language"))
