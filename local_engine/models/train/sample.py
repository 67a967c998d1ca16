"""What a task makes, and how an instruction and a text become chat messages."""

from dataclasses import dataclass, field
from typing import Optional


@dataclass
class Sample:
    task: str
    messages: list                       # chat messages; the last one is the assistant's expected answer
    tools: Optional[list] = None         # OpenAI-style tool definitions
    grade: str = "text"                  # text | json | tool: how an answer is compared with the expected one
    accept: list = field(default_factory=list)  # further right answers
    phrasing: str = ""                   # the instruction's template, for accuracy by phrasing
    # The instruction sits in the system message (or there are tools), so that the sample cannot be joined
    # with others into one conversation.
    standalone: bool = False


@dataclass(frozen=True)
class Phrasing:
    """Instructions of one task: those that training sees, and those that only the evaluation uses."""

    seen: tuple
    unseen: tuple

    def pick(self, rng, unseen):
        return rng.choice(self.unseen if unseen else self.seen)


SYSTEM_PROMPTS = (
    "You are a helpful assistant.", "You are fixpoint-tiny, a very small model.", "Answer briefly.",
    "You are a careful assistant. Follow the instruction exactly.", "Be precise and short.",
    "You answer with the result and nothing else.", "You are an assistant for office work.",
    "Reply in plain text.", "You help people with small tasks.",
)
_LABELS = ("Text", "Input", "Message", "Content")


def compose(rng, task, instruction, text, answer, **kwargs):
    """One exchange: where the instruction stands and how the text is set off varies."""
    layout = rng.random()
    label = rng.choice(_LABELS)
    standalone = False
    messages = []
    if layout < 0.30:
        user = f"{instruction}\n\n{text}"
    elif layout < 0.42:
        user = f"{instruction}\n{label}: {text}"
    elif layout < 0.50:
        user = f"{text}\n\n{instruction}"
    elif layout < 0.68:
        messages.append({"role": "system", "content": instruction})
        user = text
        standalone = True
    elif layout < 0.78:
        user = f'{instruction}\n"{text}"'
    elif layout < 0.84:
        user = f'{instruction}\n"""\n{text}\n"""'
    elif layout < 0.90:
        user = f"{instruction}\n<text>\n{text}\n</text>"
    else:
        user = f"{instruction} {label}: {text}"
    messages.append({"role": "user", "content": user})
    messages.append({"role": "assistant", "content": answer})
    return Sample(task, messages, standalone=standalone, **kwargs)


def ask(task, question, answer, **kwargs):
    return Sample(task, [{"role": "user", "content": question}, {"role": "assistant", "content": answer}], **kwargs)


def listing(rng, names, conjunction="and"):
    """The ways in which a prompt lists names."""
    style = rng.randrange(6)
    if style == 0:
        return ", ".join(names)
    if style == 1:
        return ", ".join(names[:-1]) + f" {conjunction} " + names[-1] if len(names) > 1 else names[0]
    if style == 2:
        return ", ".join(f'"{n}"' for n in names)
    if style == 3:
        return ", ".join(f"`{n}`" for n in names)
    if style == 4:
        return "(" + ", ".join(names) + ")"
    return " / ".join(names)
