"""The story of `benchmarks.durable.stories` on LangGraph's PostgreSQL checkpointer, in an environment of its own.

Arguments: a DSN and how many runs. Prints, as JSON, the seconds that each run took with a question, and without one.
"""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import base64
import json
import random
import sys
import time
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt


def model(state: MessagesState) -> dict[str, list[AnyMessage]]:
    """Call the tool, then say that it is done."""
    if isinstance(state['messages'][-1], ToolMessage):
        return {'messages': [AIMessage(content='done')]}
    number = int(state['messages'][0].text)
    text = base64.b64encode(random.Random(number).randbytes(375)).decode()
    arguments = {'to': 'bob@example.com', 'text': text, 'number': number}
    call: Any = {'name': 'send_mail', 'args': arguments, 'id': f'call-{number}'}
    return {'messages': [AIMessage(content='', tool_calls=[call])]}


def tool(state: MessagesState, *, asks: bool) -> dict[str, list[AnyMessage]]:
    """Execute the call of the last message, after asking."""
    [call] = state['messages'][-1].tool_calls  # pyright: ignore[reportAttributeAccessIssue]
    text = 'sent' if not asks or interrupt(call) == 'approved' else 'denied'
    return {'messages': [ToolMessage(content=text, tool_call_id=call['id'])]}


def graph(saver: PostgresSaver, *, asks: bool) -> Any:
    """A graph that stops at the question."""
    builder = StateGraph(MessagesState)
    builder.add_node('model', model)
    builder.add_node('tool', partial(tool, asks=asks))
    builder.add_edge(START, 'model')
    builder.add_conditional_edges('model', lambda state: 'tool' if state['messages'][-1].tool_calls else END)
    builder.add_edge('tool', 'model')
    return builder.compile(checkpointer=saver)


def main() -> None:
    """Run the story again and again."""
    dsn, runs = sys.argv[1], int(sys.argv[2])
    taken: dict[str, list[float]] = {'asked': [], 'unasked': []}
    with PostgresSaver.from_conn_string(dsn) as saver:
        saver.setup()
        graphs = {'asked': graph(saver, asks=True), 'unasked': graph(saver, asks=False)}
        for number in range(runs):
            for kind, each in graphs.items():
                # By default a checkpoint is written while the next node runs; `sync` keeps it before, as we do.
                options: Any = {
                    'config': {'configurable': {'thread_id': f'{kind}-{number}'}},
                    'durability': 'sync',
                }
                begin = time.monotonic()
                state = each.invoke({'messages': [HumanMessage(content=str(number))]}, **options)
                if kind == 'asked':
                    assert '__interrupt__' in state
                    state = each.invoke(Command(resume='approved'), **options)
                taken[kind].append(time.monotonic() - begin)
                assert state['messages'][-1].content == 'done'
    print(json.dumps(taken))


if __name__ == '__main__':
    main()
