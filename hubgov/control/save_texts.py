"""Why a document was not saved, in Chinese: the server's extension says it in English, with its values."""

from __future__ import annotations

from hubgov.phrases import Phrases

_ROWS: tuple[tuple[str, str], ...] = (
    ("disk quota exceeded", "超出磁盘配额"),
    ("no space left on the disk", "磁盘空间不足"),
    ("permission denied", "没有权限"),
    ("no such file", "文件不存在"),
    ("reached through something that is not a folder, such as a symbolic link", "路径经过符号链接等非目录"),
    ("reached through a symbolic link, which is not followed", "路径是符号链接，不予跟随"),
    ("the disk is read-only", "磁盘只读"),
    ("larger than the disk or a limit allows", "超过磁盘或限额允许的大小"),
    ("its name is too long", "文件名过长"),
    ("its name can't be written on this disk", "文件名无法写入该磁盘"),
    ("its path leads outside of the server's folder", "路径在服务器目录之外"),
    ("not a regular file", "不是普通文件"),
    ("larger than {size} MiB", "超过 {size} MiB"),
    ("all copies together would be larger than {size} MiB", "所有副本合计超过 {size} MiB"),
    ("it kept changing while it was copied", "复制期间一直在变化"),
    ("the copy reads back different from what was written", "副本读回后与写入内容不一致"),
    ("more than {count} documents are open", "打开的文档超过 {count} 个"),
    (
        "JupyterLab could not save it ({why}); the copy holds what was saved before",
        "JupyterLab 未能保存（{why}）；副本为此前已保存的内容",
    ),
    ("not_saved", "未保存"),
)
_SAID = Phrases(_ROWS)


def reason(text: str, lang: str) -> str:
    """The reason in the reader's language; as it came where there are no words for it."""
    return (_SAID.say(text) if lang == "zh" else None) or text
