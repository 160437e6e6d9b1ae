"""What goes wrong at the service and is no Decision, in Chinese: a row for each message and hint that is raised."""

from __future__ import annotations

from hubgov.phrases import Phrases

MESSAGES: tuple[tuple[str, str], ...] = (
    # who asks
    ("no valid token of the hub", "没有有效的 hub 令牌"),
    ("the hub doesn't answer", "hub 没有响应"),
    ("the hub doesn't let you use this service", "hub 不允许你使用该服务"),
    ("this needs the scope custom:hubgov:admin", "需要权限 custom:hubgov:admin"),
    ("the whole audit is for admins", "完整审计仅限管理员查看"),
    ("{id} belongs to {owner}", "{id} 属于 {owner}"),
    ("only the spawner reports on servers", "只有 spawner 可以报告服务器状态"),
    ("only the spawner starts notebooks", "只有 spawner 可以启动笔记本"),
    ("the spawner starts notebooks only", "spawner 只启动笔记本"),
    # what isn't there
    ("no workload {id}", "没有任务 {id}，或无权查看"),
    ("no session {id} to resume", "没有可继续的会话 {id}"),
    ("no such server", "没有该服务器"),
    ("no session of this server yet", "该服务器还没有会话"),
    ("no node {node}", "没有节点 {node}"),
    ("no queue {queue}", "没有队列 {queue}"),
    ("no engine of this service runs {kind} work", "该服务没有可运行 {kind} 任务的引擎"),
    # what is in another state
    ("{id} is over", "{id} 已结束"),
    ("{id} is over: {headline}", "{id} 已结束：{headline}"),
    ("{id} is not over yet", "{id} 尚未结束"),
    ("{id} isn't running yet; its time begins when it does", "{id} 尚未运行，开始运行后才计时"),
    ("{id} is already being stopped", "{id} 正在停止"),
    ("{id} is {state}, not about to start", "{id} 处于 {state}，不在启动中"),
    ("{id} has no end that could move", "{id} 没有可变更的到期时间"),
    ("{id} has no devices in attempt {attempt}", "{id} 在第 {attempt} 次运行中没有设备"),
    ("{id}, the last session of this server, is still stopping", "该服务器的上一个会话 {id} 仍在停止"),
    ("the end of this lease moved since you looked", "查看之后到期时间已变化"),
    ("asking for more than the self-serve limit needs a reason", "超出自助延长上限的申请须说明理由"),
    ("nobody asked this session for that save", "没有向该会话请求过这次保存"),
    ("this idempotency key came with another request before", "该幂等键已用于另一个请求"),
    ("{limit} spawns wait attached already", "已有 {limit} 个启动请求在等待"),
    # the policy
    ("errors in the policy: {count}; nothing was applied", "策略有 {count} 处错误，未应用"),
    ("the policy is at version {now}, your edit began at {begun}", "策略已是版本 {now}，你的修改始于版本 {begun}"),
    ("the new policy takes away what work still needs: {what}", "新策略会移除仍在使用的内容：{what}"),
    # what was sent
    ("given {count} times", "给出了 {count} 次"),
    ("{value} is not a whole number", "{value} 不是整数"),
    ("{value} is out of bounds", "{value} 超出范围"),
    ("not a valid text", "不是有效文本"),
    ("Idempotency-Key must have 1 to 200 printable characters", "Idempotency-Key 须为 1 到 200 个可打印字符"),
    ("the version that the edit began with is missing", "缺少修改所基于的版本"),
    ("the body is not JSON: {why}", "请求体不是 JSON：{why}"),
    ("the body must be a JSON object", "请求体须为 JSON 对象"),
    ("the body is nested too deeply", "请求体嵌套过深"),
    ("texts must be valid Unicode without NUL characters", "文本须为有效的 Unicode，且不含 NUL 字符"),
    ("missing", "缺少"),
    ("not the one of the address", "与地址中的不一致"),
    ("{state} is no state", "没有状态 {state}"),
    ("give either by_seconds or until", "请给出 by_seconds 或 until 之一"),
    ("not after the present end", "不晚于当前到期时间"),
    ("Field required", "缺少该字段"),
    ("Extra inputs are not permitted", "没有该字段"),
    ("Input should be greater than or equal to {least}", "不得小于 {least}"),
    ("Input should be less than or equal to {most}", "不得大于 {most}"),
    ("Input should be greater than {least}", "须大于 {least}"),
    ("Input should be a valid {kind_}", "须为{kind_}"),
    ("Input should be {words}", "须为 {words}"),
    ("String should have at most {most} characters", "最多 {most} 个字符"),
    ("String should have at least {least} character", "至少 {least} 个字符"),
    ("integer", "整数"),
    ("number", "数字"),
    ("string", "文本"),
    ("list", "列表"),
    ("boolean", "true 或 false"),
    ("dictionary", "对象"),
    ("{value} is not a duration; write {example}", "{value} 不是时长；请写 {example}"),
    ("{value} is longer than ten years", "{value} 超过十年"),
    ("{value} is not a memory size; write it as {example}", "{value} 不是显存大小；请写成 {example}"),
    ("{value} is larger than 1PiB", "{value} 超过 1PiB"),
    ("{value} has no UTC offset; write it as {example}", "{value} 没有时区；请写成 {example}"),
    # what does not work
    ("nothing was changed: {why}", "未做任何修改：{why}"),
    ("the ledger can't be written: {why}", "无法写入账本：{why}"),
    ("the ledger can't be read: {why}", "无法读取账本：{why}"),
)

HINTS: tuple[tuple[str, str], ...] = (
    ("get one at /hub/token", "可在 /hub/token 获取"),
    ("give it once", "请只给出一次"),
    ("{least} to {most}", "{least} 到 {most}"),
    ("at most {most} visible characters", "最多 {most} 个可见字符"),
    ("at most {most} levels", "最多 {most} 层"),
    ("ask an admin for {right}", "请管理员授予 {right}"),
    ("try again in a moment", "请稍后重试"),
    ("try again", "请重试"),
    ("nothing was changed; try again", "未做任何修改，请重试"),
    ("send a JSON object", "请发送 JSON 对象"),
    ("send {what}", "请发送 {what}"),
    ("send the same id", "请发送相同的编号"),
    ("remove them", "请去掉"),
    ("see /openapi.json for the fields and their limits", "字段及其上限见 /openapi.json"),
    ("?workload=ID shows that of one workload", "?workload=ID 可查看单个任务的审计"),
    ("start one", "请先启动"),
    ("start a new one", "请启动新的会话"),
    ("wait until it ended", "请等它结束"),
    ("one of {words}", "可用值：{words}"),
    ("detach; the place in line is kept", "可离开，排队位置会保留"),
    ("ask its owner or a lead of its team", "请联系其所有者或团队负责人"),
    ("sign in as an admin of hubgov", "请以 hubgov 管理员登录"),
    ("use a new key for another request", "另一个请求请用新的键"),
    ("look at the difference and apply again from the current version", "请先比较差异，再从当前版本应用"),
    (
        "wait until it is free, or mark the queue, project or pool `retired: true` first",
        "请等其空闲，或先将队列、项目或资源池标为 `retired: true`",
    ),
    ("this is no call for people", "该接口不供人使用"),
    ("use the id you were given", "请使用收到的编号"),
    ("only its own server reports on it", "只有它自己的服务器可以报告"),
    ("ask for the workload again", "请重新查看该任务"),
    ("the attempt is over; ask for the workload again", "这次运行已结束，请重新查看该任务"),
    ("extend it once it runs", "运行后再延长"),
    ("resume it when it has ended", "结束后可继续"),
    ("look at the new end first", "请先查看新的到期时间"),
    ("say why", "请说明理由"),
    ("start it from the hub's page", "请从 hub 页面启动"),
    ("submit other work in your own name", "其他任务请以自己的名义提交"),
    ("its devices are freed within a minute; then start again", "设备将在一分钟内释放，之后请重试"),
    ("kinds that run here: {kinds}", "此处可运行：{kinds}"),
)

_MESSAGES, _HINTS = Phrases(MESSAGES), Phrases(HINTS)


def told(message: str, hint: str, lang: str) -> tuple[str, str]:
    """(message, hint) of an error in a language; as they were raised where there are no words for them."""
    if lang != "zh":
        return message, hint
    return _MESSAGES.say(message) or message, _HINTS.say(hint) or hint
