"""What the audit shows of an event and of the states before and after it, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from hubgov.cli.cli_texts import EXTENSION_STATES
from hubgov.texts import STATES, word

EVENTS: Mapping[str, tuple[str, str]] = {
    # a request
    "workload_submitted": ("submitted", "提交"),
    "workload_admitted": ("admitted", "准入"),
    "workload_moved": ("updated", "更新"),
    "workload_pending": ("back in the queue", "重新排队"),
    "workload_running": ("runs", "开始运行"),
    "workload_succeeded": ("succeeded", "成功结束"),
    "workload_failed": ("failed", "失败"),
    "workload_cancelled": ("cancelled", "取消"),
    "workload_expired": ("ended by its time limit", "到期结束"),
    "workload_culled": ("ended when idle or unopened", "因空闲或无人打开而结束"),
    "retry_cancelled": ("no further try", "不再重试"),
    # its devices
    "allocation_reserved": ("devices reserved", "预留设备"),
    "allocation_launched": ("start begun", "开始启动"),
    "allocation_ready": ("ready, lease begins", "就绪，开始计时"),
    "allocation_exited": ("process ended", "进程结束"),
    "allocation_lease_ended": ("lease ended", "租约到期"),
    "allocation_extended": ("end moved", "到期时间变更"),
    "allocation_preempted": ("devices being reclaimed", "收回设备"),
    "allocation_spared": ("not reclaimed after all", "不再收回"),
    "user_departed": ("the hub deleted the user", "hub 已删除该用户"),
    "allocation_grace_ended": ("grace ended, told to stop", "宽限结束，通知停止"),
    "allocation_cancelled": ("told to stop", "通知停止"),
    "allocation_start_overdue": ("did not start in time", "未按时启动"),
    "allocation_gone": ("devices given back", "归还设备"),
    "allocation_stop_overdue": ("did not stop in time, devices fenced", "未按时停止，隔离设备"),
    "allocation_node_silent": ("node does not answer", "节点无应答"),
    "allocation_node_back": ("node answers again", "节点恢复应答"),
    "allocation_node_lost": ("node given up", "节点丢失"),
    "allocation_unknown_to_engine": ("engine knows nothing of it", "引擎中已不存在"),
    # idle
    "allocation_idled": ("idle and not kept, grace begins", "空闲且未保留，进入宽限"),
    "allocation_revived": ("goes on after all", "恢复运行"),
    "idle_suspected": ("idle, only observed", "空闲，仅观察"),
    "idle_asked": ("idle, owner asked", "空闲，已询问所有者"),
    "idle_kept": ("kept by its owner", "所有者选择保留"),
    "idle_keep_ended": ("kept no longer", "保留到期"),
    "idle_at_work": ("at work again", "恢复工作"),
    "idle_withdrawn": ("not idle after all", "不再视为空闲"),
    "idle_rule_gone": ("no idle rule any more", "已无空闲规则"),
    "idle_grace_moved": ("idle grace begun anew after a restart", "服务重启后重新计算宽限"),
    "idle_stop_observed": ("would have been stopped as idle", "本应因空闲停止（仅观察）"),
    "alive_only_by_claim": ("alive only by what it says of itself", "仅凭自述活动存活"),
    "kernel_end_asked": ("idle kernel to be shut down", "请求关闭空闲内核"),
    "kernel_end_observed": ("idle kernel, only observed", "内核空闲，仅观察"),
    "kernel_end_withdrawn": ("kernel is not shut down after all", "不再关闭内核"),
    "kernel_ended": ("idle kernel shut down", "已关闭空闲内核"),
    "kernel_not_ended": ("idle kernel not shut down", "未能关闭空闲内核"),
    # more time
    "decision_told": ("decision told to the session", "已将审批结果告知会话"),
    "extension_granted": ("extension granted", "批准延长"),
    "extension_needs_approval": ("extension asked for", "申请延长"),
    "extension_denied": ("extension denied", "拒绝延长"),
    "extension_lapsed": ("extension request lapsed", "延长申请失效"),
    "extension_withdrawn": ("extension request withdrawn", "撤回延长申请"),
    "extension_counted": ("extension counted", "计入延长次数"),
    # the server
    "server_start_asked": ("server start asked for", "请求启动服务器"),
    "server_claimed": ("opened", "已打开"),
    "stop_hastened": ("stop without further waiting", "立即停止，不再等待"),
    "stop_asked": ("stop asked for at the hub", "在 hub 请求停止"),
    "processes_known": ("processes recorded", "记录进程"),
    "warning_issued": ("warning issued", "发出提醒"),
    "save_requested": ("save asked for", "请求保存"),
    "save_answered": ("save answered", "保存已应答"),
    "documents_saved": ("documents saved", "保存文档"),
    # the place
    "tariff_ended": ("usage goes on at another price", "按新价格继续计费"),
    "policy_applied": ("policy applied", "应用策略"),
    "queue_held": ("queue put on hold", "暂停队列"),
    "queue_released": ("queue goes on", "恢复队列"),
    "node_seen": ("node seen", "发现节点"),
    "node_drained": ("node drained", "节点停止接收"),
    "node_undrained": ("node takes work again", "节点恢复接收"),
}

_RECORD_STATES: Mapping[str, tuple[str, str]] = {
    **STATES,
    **EXTENSION_STATES,
    "reserved": ("reserved", "已预留"),
    "releasing": ("process ended, devices not yet free", "进程已结束，设备未归还"),
    "released": ("released", "已归还"),
}


def event_word(event: str, lang: str) -> str:
    """An event in words; its code where a newer service has one more."""
    return word(EVENTS, event, lang)


def state_word(state: str | None, lang: str) -> str | None:
    """The state of a record before or after an event in words."""
    return word(_RECORD_STATES, state, lang) if state is not None else None
