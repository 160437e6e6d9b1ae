"""What can be wrong with a submitted form, or with options from REST, in Chinese: a row a message and hint."""

from __future__ import annotations

from hubgov.phrases import Phrases

MESSAGES: tuple[tuple[str, str], ...] = (
    ("options must be an object", "选项须为对象"),
    ("has {length} characters", "有 {length} 个字符"),
    ("has an invisible character ({name})", "含有不可见字符（{name}）"),
    ("has a blank at an end ({name})", "首尾有空格（{name}）"),
    (
        "the user name {wrong_}; hubgov takes at most {most} visible characters with no blank at either end",
        "用户名{wrong_}；hubgov 最多接受 {most} 个可见字符，首尾不得有空格",
    ),
    ("unknown option {name}", "没有选项 {name}"),
    ("field {name} must be there once, as text", "字段 {name} 须以文本给出一次"),
    ("no profile {name}", "没有配置 {name}"),
    ("no profile is set up", "没有可用的配置"),
    ("{value} is no name of 1 to {most} visible characters", "{value} 不是 1 到 {most} 个可见字符的名称"),
    ("{value} is not a whole number from {least} to {most}", "{value} 不是 {least} 到 {most} 的整数"),
    ("{value} is not a number of GPUs from 0 to {most}", "{value} 不是 0 到 {most} 的 GPU 数量"),
    ("{value} is not a time from 1 s to ten years", "{value} 不是 1 秒到十年的时长"),
    ("{value} is not a memory size; write it as {example}", "{value} 不是内存或显存大小；请写成 {example}"),
    ("{value} is larger than 1PiB", "{value} 超过 1PiB"),
)

HINTS: tuple[tuple[str, str], ...] = (
    ("known options: {names}", "可用选项：{names}"),
    (
        "an administrator can rename the user in the hub; the home stays",
        "管理员可在 hub 中重命名该用户，主目录不变",
    ),
    ("profiles: {names}", "可用配置：{names}"),
    ("add one to the policy's spawn profiles", "请在策略的 spawn_profiles 中添加"),
    ("send the form as this page shows it", "请按本页显示的表单提交"),
    ("write it without blanks around it", "首尾请勿留空格"),
    ("write it in digits, such as {example}", "请用数字填写，例如 {example}"),
    ("write 1, or 0.25 for a quarter of a card", "请写 1，或用 0.25 表示四分之一张卡"),
    ("write seconds, or a text such as 4h or 1h30m", "请写秒数，或 4h、1h30m 这样的文本"),
    ("such as 20GiB", "例如 20GiB"),
)

_MESSAGES, _HINTS = Phrases(MESSAGES), Phrases(HINTS)


def told(message: str, hint: str, lang: str) -> tuple[str, str]:
    """(message, hint) of a mistake in a language; as they were raised where there are no words for them."""
    if lang != "zh":
        return message, hint
    return _MESSAGES.say(message) or message, _HINTS.say(hint) or hint
