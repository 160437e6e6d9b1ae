"""The help of options and arguments in Chinese, by its English."""

from __future__ import annotations

from hubgov.phrases import Phrases

PAIRS: tuple[tuple[str, str], ...] = (
    # of every verb
    ("Print the document of the REST interface.", "输出 REST 接口的 JSON 文档。"),
    ("Language of all texts.", "所有文字的语言。"),
    ("No colours; also by NO_COLOR.", "不使用颜色；也可设置 NO_COLOR。"),
    ("Only what was asked for, no remarks.", "只输出所求内容，不加附注。"),
    ("Print the version.", "显示版本。"),
    ("Show this message and exit.", "显示本说明后退出。"),
    # workloads
    ("A workload's id, such as nb-7.", "任务编号，如 nb-7。"),
    ("Only these: {states}.", "仅限这些状态：{states}。"),
    ("Only of this person.", "仅限该用户。"),
    ("Only of this team.", "仅限该团队。"),
    ("Only in this queue.", "仅限该队列。"),
    ("Only in this pool.", "仅限该资源池。"),
    ("Only of this workload.", "仅限该任务。"),
    ("Which of {columns}, in what order.", "显示哪些列及其次序，可选：{columns}。"),
    ("At most so many rows.", "最多显示多少行。"),
    ("Draw again whenever something changes.", "有变化时重新显示。"),
    ("The file to write; must not be there.", "要写入的文件，须不存在。"),
    ("A group of the hub that gets a team.", "要建立团队的 hub 用户组，可重复。"),
    ("Time zone; the machine's own by default.", "时区，默认为本机时区。"),
    ("Simulated devices even where there are real ones.", "即使有真实卡也使用模拟设备。"),
    ("Wait so long until it runs or is over.", "最长等待时间，直到运行或结束。"),
    ("A request's id, such as nb-7-x1.", "申请编号，如 nb-7-x1。"),
    ("A word to who asked.", "给申请人的说明。"),
    ("Less than was asked for.", "少于所申请的时间。"),
    ("Why; who asked reads it.", "理由，申请人可见。"),
    ("How much longer, such as 2h.", "延长多久，如 2h。"),
    ("Why; it is shown to others.", "理由，他人可见。"),
    ("Why; it goes into the audit.", "理由，记入审计。"),
    ("Why; everybody who waits reads it.", "理由，排队者可见。"),
    ("At once, without the time to save.", "立即停止，不留保存时间。"),
    ("How long a running notebook still has.", "运行中的笔记本还可使用多久。"),
    ("Only what this one did.", "只看此人的操作。"),
    ("Only this event.", "只看此类事件。"),
    ("Only from this day or instant on.", "仅自该日期或时刻起。"),
    ("Only up to this day or instant, without it.", "仅至该日期或时刻（不含）。"),
    # cost
    ("Of team, project, user, queue, kind, flavor, day.", "可选 team、project、user、queue、kind、flavor、day。"),
    ("From this day or instant on; else this month's first.", "起始日期或时刻，默认为本月一日。"),
    ("Up to this day or instant, without it; else now.", "截止日期或时刻（不含），默认为当前。"),
    ("How it is written.", "输出格式。"),
    ("With usage of simulated devices.", "计入模拟设备的用量。"),
    # plan
    ("The queue that would take it.", "目标队列。"),
    ("How many, or the counts that would do.", "数量，或可接受的多个数量。"),
    ("On the account of this project; else your first.", "计入该项目；默认为你的第一个项目。"),
    ("One of {kinds}; else the queue's only one.", "类型，可选：{kinds}；默认为队列唯一的类型。"),
    ("A card type; may be given more than once.", "卡型，可多次给出。"),
    ("Memory of each device, such as 20GiB.", "每个设备的显存，如 20GiB。"),
    ("CPUs in all.", "CPU 总数。"),
    ("Main memory in all, such as 64GiB.", "内存总量，如 64GiB。"),
    ("A label that the node must have, such as net=ib.", "节点须有的标签，如 net=ib。"),
    ("For how long, such as 4h.", "时长，如 4h。"),
    ("Further tries after a failure.", "失败后的重试次数。"),
    ("What to call it.", "名称。"),
    ("The model that it works on.", "所用模型。"),
    ("A label for it; may be given more than once.", "自定义标签，可多次给出。"),
    ("Only once this one has ended.", "在该任务结束之后。"),
    ("Higher is more urgent; within the queue's range.", "数值越大越优先，须在队列允许的范围内。"),
    ("Equal shards on so many nodes, or whatever fits; else one.", "均分到多少个节点，或 any 表示任意；默认一个。"),
    ("Never to be reclaimed, where the queue allows it.", "不可被收回（须队列允许）。"),
    ("Past a guard where the queue allows it, and why.", "越过限制的理由（须队列允许）。"),
    ("Given up when it does not run within this time of being granted.", "获准后超过该时间仍未运行则放弃。"),
    # submit and logs
    ("The command and its arguments, after --.", "命令及其参数，写在 -- 之后。"),
    ("The folder of your home to run in; else the home.", "在主目录中的哪个目录运行；默认为主目录。"),
    ("A variable for the command; may be given more than once.", "命令的环境变量，可多次给出。"),
    ("Wait until it is over, at most so long.", "等到结束，可给出最长时间。"),
    ("Go on until it is over, over all of its attempts.", "持续显示到结束，包括每次运行。"),
    ("Of this attempt; else the last.", "第几次运行；默认为最后一次。"),
    # the place
    ("A queue's name.", "队列名称。"),
    ("A node's name.", "节点名称。"),
    ("Refuse new work too.", "同时拒绝新任务。"),
    ("Also the daily run, not only people's acts.", "也包括日常事件，不只人的操作。"),
    ("A policy file; - for stdin.", "策略文件；- 表示标准输入。"),
    ("Without asking.", "不询问。"),
    ("The version that the edit began with; else the present one.", "修改所基于的版本；默认为现行版本。"),
    ("Only the number of the version in force.", "只显示现行版本号。"),
    # login
    ("Of the hub or its service; else HUBGOV_URL, else this machine's hub.",
     "hub 或服务的地址；默认为 HUBGOV_URL，其次为本机 hub。"),
    ("Your name at the hub; else the one on this machine.", "hub 上的用户名；默认为本机用户名。"),
    ("Read the password from stdin.", "从标准输入读取密码。"),
    ("For how many days the token is good.", "令牌有效天数。"),
    # demo
    ("JupyterHub with hubgov on this machine, in one command; again to bring back what was killed.",
     "在本机一条命令启动带 hubgov 的 JupyterHub；再次运行可恢复被终止的部分。"),
    ("show this help message and exit", "显示本说明后退出"),
    ("port of the hub's page (8000)", "hub 页面的端口（8000）"),
    ("folder of everything that it keeps", "保存所有数据的目录"),
    ("let policy time pass {rate} times as fast; for a tour", "策略时间以 {rate} 倍速度流逝，便于体验"),
    ("language of what is printed here", "此处输出的语言"),
    ("simulated devices even where there are real ones", "即使有真实设备也使用模拟设备"),
    ("policy to begin with, instead of the sample cut out of this box", "初始策略文件，代替按本机生成的示例"),
    ("time zone of the sample policy; the machine's own by default", "示例策略的时区；默认为本机时区"),
    ("open no browser", "不打开浏览器"),
    ("new passwords for the four sign-ins", "为四个账号重新生成密码"),
    ("stop everything", "全部停止"),
)  # fmt: skip

USAGE: tuple[tuple[str, str], ...] = (
    ("Missing option '{name}'.", "缺少选项 {name}。"),
    ("Missing argument '{name}'.", "缺少参数 {name}。"),
    ("No such option: {name}", "没有选项 {name}"),
    ("No such option '{name}'.", "没有选项 {name}。"),
    ("No such option: {name} Did you mean {near}?", "没有选项 {name}，是否想用 {near}？"),
    ("No such option '{name}'. Did you mean {near}?", "没有选项 {name}，是否想用 {near}？"),
    ("Option '{name}' requires an argument.", "选项 {name} 需要一个值。"),
    ("Option '{name}' does not take a value.", "选项 {name} 不带值。"),
    ("Got unexpected extra argument(s) ({what})", "多余的参数：{what}"),
    ("Invalid value for '{name}': {what_}", "{name}：{what_}"),
    ("Input should be greater than or equal to {least}", "不得小于 {least}"),
    ("Input should be less than or equal to {most}", "不得大于 {most}"),
    ("Input should be a valid integer, unable to parse string as an integer", "须为整数"),
    ("{value} is not one of {words}.", "{value} 不在 {words} 之中。"),
)
"""What is wrong with how a verb was called, as the parser says it."""

_PHRASES, _USAGE = Phrases(PAIRS), Phrases(USAGE)


def help_in(english: str | None, lang: str) -> str | None:
    """The help of an option in a language; as it is where there are no words for it."""
    if lang != "zh" or not english:
        return english
    return _PHRASES.say(english) or english


def usage_in(english: str, lang: str) -> str:
    """What is wrong with a call in a language; as the parser says it where there are no words for it."""
    english = english.replace("Value error, ", "")
    return (_USAGE.say(english) if lang == "zh" else None) or english
