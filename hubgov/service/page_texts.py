"""The words of the service's own pages, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

PAGE: Mapping[str, tuple[str, str]] = {
    "title": ("GPU sessions", "GPU 会话"),
    "other_language": ("中文", "English"),
    "back": ("Hub home", "返回 Hub"),
    "waiting_title": ("Waiting for a GPU", "正在排队"),
    "position": ("Place {position} in queue {queue}", "在队列 {queue} 中排第 {position} 位"),
    "in_queue": ("In queue {queue}", "队列 {queue}"),
    "why": ("Why", "原因"),
    "latest_start": ("Starts by", "预计开始不晚于"),
    "as_things_stand": (
        "as things stand: others' extensions, early ends and requests can move it",
        "按当前情况推算：他人的延长、提前结束和新请求都可能使其变化",
    ),
    "to_receipt": ("Receipt, and start it again", "查看回执，或重新启动"),
    "job_runs": ("It runs.", "正在运行。"),
    "job_starts": ("It is starting.", "正在启动。"),
    "job_log": ("What it writes:", "输出："),
    "not_known": ("not known", "未知"),
    "request": ("Request", "请求"),
    "waited": ("Waited", "已等待"),
    "kept": (
        "Your place is kept. You may close this page; the server starts by itself.",
        "排队位置会保留。可以关闭本页，轮到时服务器会自动启动。",
    ),
    "cancel": ("Cancel", "取消"),
    "open": ("Open the notebook", "打开笔记本"),
    "starting": (
        "Granted. The server is starting; this page opens it by itself.",
        "已获准。服务器正在启动，随后自动打开。",
    ),
    "granted_other": ("Granted. It is for {owner} to open.", "已获准，由 {owner} 打开。"),
    "is_running": ("The server runs.", "服务器正在运行。"),
    "is_preempting": (
        "Its devices are needed for work that is guaranteed them. It is stopped after its grace, and then waits "
        "again at its old place.",
        "所占设备须让给有保障的任务。宽限期后停止，随后回到原排队位置。",
    ),
    "stops_at": ("Stops at", "停止时间"),
    "is_stopping": (
        "It is being stopped: its documents are saved first, then its devices are freed.",
        "正在停止：先保存文档，再释放设备。",
    ),
    "is_quarantined": (
        "It is stopped, and its team is no longer charged; a process of it is not gone yet, so its devices stay "
        "fenced until it is.",
        "已停止，不再计入团队用量；仍有进程未退出，设备在其退出前保持隔离。",
    ),
    "is_suspect": (
        "Its node doesn't answer. If it comes back in time the session goes on; if not, it waits again at its old "
        "place.",
        "所在节点无响应。若及时恢复，会话继续；否则回到原排队位置。",
    ),
    "offline": (
        "Connection lost. Your place is kept on the server; this page retries every 10 s.",
        "连接中断。排队位置保留在服务器端，本页每 10 秒重试。",
    ),
    "blockers": ("What is in the way", "阻碍因素"),
    "need": ("needs", "需要"),
    "have": ("left", "剩余"),
    "held_by": ("held by", "占用者"),
    "free_at": ("free at the latest", "最迟释放"),
    "end_is": ("end", "到期"),
    "next": ("You can", "可选操作"),
    "simulated": ("SIMULATED", "模拟"),
    "mine": ("My sessions and requests", "我的会话与请求"),
    "nothing": ("Nothing runs and nothing waits.", "没有运行中或排队的请求。"),
    "start_one": ("Start a notebook", "启动笔记本"),
    "quota": ("Quota", "配额"),
    "devices": ("Devices", "设备"),
    "no_devices": ("No devices yet.", "尚无设备。"),
    "team": ("Team", "团队"),
    "project": ("Project", "项目"),
    "pool": ("Pool", "资源池"),
    "card": ("Card", "卡型"),
    "guaranteed": ("Guaranteed", "保障"),
    "used": ("In use", "已用"),
    "borrowed": ("Borrowed", "借用"),
    "available": ("Available", "可用"),
    "node": ("Node", "节点"),
    "owner": ("Responsible", "负责人"),
    "environment": ("Environment", "环境"),
    "state": ("State", "状态"),
    "use": ("Use", "使用率"),
    "session": ("Session", "会话"),
    "ends": ("Lease ends", "租约到期"),
    "grace_to": ("grace to {at}", "宽限至 {at}"),
    "cost": ("Cost so far", "当前费用"),
    "missing": ("No request {what}, or none of yours.", "没有请求 {what}，或不属于你。"),
}
