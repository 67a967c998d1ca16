"""Choosing a tool and its arguments, answering from a tool's result, and declining when no tool fits."""

import json

from sample import Phrasing, Sample
from words import FOODS, PLACES, WEEKDAYS

NO_TOOL = "None of my tools can do that."
LANGUAGES = ("French", "German", "Spanish", "Italian", "Turkish", "Polish", "Greek", "Czech")
CODES = ("EUR", "USD", "GBP", "JPY", "CHF", "SEK", "PLN", "TRY")
ROOMS = ("kitchen", "bedroom", "bathroom", "hall", "office", "garage", "living room", "cellar")


class Tool:
    """A kind of tool: its possible names, its parameters (possible names and type), how people ask for it, and
    what a result looks like and how it is told. `draw` makes the values by role."""

    def __init__(self, names, description, parameters, asks, draw, result=None, tell=None):
        self.names, self.description, self.parameters = names, description, parameters
        self.asks, self.draw, self.result, self.tell = asks, draw, result, tell


def _tool(names, description, parameters, seen, unseen, draw, result=None, tell=None):
    return Tool(names, description, parameters, Phrasing(seen, unseen), draw, result, tell)


TOOLS = (
    _tool(("get_weather", "weather", "current_weather", "fetch_weather"), "Current weather of a city",
          {"city": (("city", "location", "place"), "string")},
          ("What is the weather in {city}?", "How is the weather in {city}?", "Weather in {city}, please.",
           "Does it rain in {city}?", "How warm is it in {city}?", "Tell me the weather for {city}."),
          ("Do I need an umbrella in {city} today?", "Is it sunny over in {city}?"),
          lambda c: {"city": c.city()},
          lambda c: {"temperature": c.rng.randrange(-10, 38),
                     "condition": c.rng.choice(("rain", "sun", "snow", "fog", "clouds", "wind"))},
          "It is {temperature} degrees in {city} with {condition}."),
    _tool(("get_time", "local_time", "clock"), "Current time in a city", {"city": (("city", "location"), "string")},
          ("What time is it in {city}?", "Tell me the time in {city}.", "Current time in {city}?",
           "How late is it in {city} now?"),
          ("Is it already morning in {city}?", "Would I wake people in {city} if I called?"),
          lambda c: {"city": c.city()}, lambda c: {"time": c.time()}, "It is {time} in {city}."),
    _tool(("send_email", "send_mail", "email"), "Send an email",
          {"to": (("to", "recipient", "address"), "string"), "subject": (("subject", "title"), "string")},
          ("Send an email to {to} with the subject {subject}.", "Write to {to}, subject: {subject}.",
           "Please mail {to} about {subject}.", "Email {to} about {subject}."),
          ("Drop {to} a line regarding {subject}.", "{to} should hear from me on {subject}."),
          lambda c: {"to": c.email(), "subject": f"{c.invented()} {c.rng.choice(('report', 'update', 'plan', 'invoice'))}"},
          lambda c: {"status": "sent"}, "The email to {to} was sent."),
    _tool(("create_event", "add_event", "schedule_meeting"), "Put an event into the calendar",
          {"title": (("title", "name", "event"), "string"), "day": (("day", "weekday"), "string"),
           "time": (("time", "start"), "string")},
          ("Create an event {title} on {day} at {time}.", "Put {title} in my calendar for {day} at {time}.",
           "Schedule {title} on {day}, {time}.", "Add {title} to the calendar: {day} {time}."),
          ("Block {day} {time} for {title}.", "I have {title} come {day} at {time}, note it down."),
          lambda c: {"title": f"{c.invented()} {c.rng.choice(('review', 'lunch', 'call', 'training'))}",
                     "day": c.rng.choice(WEEKDAYS), "time": c.time()},
          lambda c: {"status": "created"}, "{title} is in the calendar for {day} at {time}."),
    _tool(("convert_currency", "exchange", "currency"), "Convert an amount of money",
          {"amount": (("amount", "value"), "number"), "source": (("from", "source"), "string"),
           "target": (("to", "target"), "string")},
          ("Convert {amount} {source} to {target}.", "How much is {amount} {source} in {target}?",
           "What are {amount} {source} in {target}?", "Change {amount} {source} into {target}."),
          ("I have {amount} {source}; what would I get in {target}?", "{amount} {source}, expressed in {target}?"),
          lambda c: dict(zip(("amount", "source", "target"), [c.rng.randrange(1, 1000)] + c.rng.sample(CODES, 2))),
          lambda c: {"result": c.rng.randrange(100, 99999) / 100}, "{amount} {source} are {result} {target}."),
    _tool(("set_timer", "start_timer", "timer"), "Start a timer", {"minutes": (("minutes", "duration"), "integer")},
          ("Set a timer for {minutes} minutes.", "Start a timer of {minutes} minutes.", "Timer: {minutes} minutes.",
           "Wake me in {minutes} minutes.", "Remind me in {minutes} minutes."),
          ("Ring the bell once {minutes} minutes are over.", "Let {minutes} minutes pass, then beep."),
          lambda c: {"minutes": c.rng.randrange(1, 120)}, lambda c: {"status": "running"},
          "The timer for {minutes} minutes is running."),
    _tool(("lookup_order", "get_order", "order_status"), "Status of an order", {"order": (("order_id", "id", "order"), "string")},
          ("What is the status of order {order}?", "Where is order {order}?", "Look up order {order}.", "Check order {order}.",
           "Has order {order} been sent?"),
          ("Any news on {order}?", "My purchase {order} still has not come."),
          lambda c: {"order": c.code()},
          lambda c: {"status": c.rng.choice(("shipped", "delivered", "packed", "waiting", "cancelled"))},
          "The status of order {order} is: {status}."),
    _tool(("cancel_order", "stop_order"), "Cancel an order", {"order": (("order_id", "id", "order"), "string")},
          ("Cancel order {order}.", "Please cancel my order {order}.", "I want to cancel order {order}.",
           "Stop order {order}, please."),
          ("I changed my mind about {order}.", "Forget the purchase {order}, I do not want it."),
          lambda c: {"order": c.code()}, lambda c: {"status": "cancelled"}, "Order {order} was cancelled."),
    _tool(("translate", "translate_text"), "Translate a text",
          {"text": (("text", "input"), "string"), "language": (("language", "target_language", "to"), "string")},
          ('Translate "{text}" into {language}.', 'What is "{text}" in {language}?', 'Say "{text}" in {language}.',
           'Translate to {language}: "{text}"'),
          ('How would somebody put "{text}" when speaking {language}?', 'I need the {language} for "{text}".'),
          lambda c: {"text": c.rng.choice((f"the {c.term(PLACES)} is closed", f"I like {c.term(FOODS)}",
                                           f"{c.invented()} {c.invented()}", "good morning", "where is the station")),
                     "language": c.rng.choice(LANGUAGES)},
          lambda c: {"translation": f"{c.invented()} {c.invented()}"}, 'In {language} that is "{translation}".'),
    _tool(("book_table", "reserve_table", "restaurant_booking"), "Book a table in a restaurant",
          {"restaurant": (("restaurant", "name", "place"), "string"), "people": (("people", "guests", "seats"), "integer"),
           "time": (("time",), "string")},
          ("Book a table at {restaurant} for {people} people at {time}.", "Reserve a table for {people} at {restaurant}, {time}.",
           "I need a table for {people} at {time} in {restaurant}."),
          ("We are {people} and want to dine at {restaurant} around {time}.", "{restaurant}, {time}, party of {people}."),
          lambda c: {"restaurant": c.last_name(), "people": c.rng.randrange(2, 13), "time": c.time()},
          lambda c: {"status": "booked"}, "A table for {people} at {restaurant} is booked for {time}."),
    _tool(("get_stock_price", "stock_price", "quote"), "Latest price of a share", {"symbol": (("symbol", "ticker"), "string")},
          ("What is the stock price of {symbol}?", "Price of {symbol}?", "Get the share price of {symbol}.",
           "How much is a share of {symbol}?"),
          ("How is {symbol} doing at the exchange?", "What would one {symbol} cost me on the market?"),
          lambda c: {"symbol": "".join(c.rng.choice("ABCDEFGHIJKLMNOPRSTUVWXYZ") for _ in range(c.rng.choice((3, 4))))},
          lambda c: {"price": c.rng.randrange(100, 90000) / 100}, "A share of {symbol} costs {price}."),
    _tool(("set_light", "switch_light", "light"), "Switch the light of a room",
          {"room": (("room", "where"), "string"), "state": (("state", "mode"), "string")},
          ("Turn {state} the light in the {room}.", "Switch {state} the {room} light.", "Light {state} in the {room}, please.",
           "{room} light {state}."),
          ("The {room} lamp should be {state}.", "I want the {room} lighting {state}."),
          lambda c: {"room": c.term(ROOMS), "state": c.rng.choice(("on", "off"))}, lambda c: {"status": "ok"},
          "The light in the {room} is {state}."),
    _tool(("set_temperature", "heat_room", "thermostat"), "Set the temperature of a room",
          {"room": (("room", "where"), "string"), "degrees": (("degrees", "temperature"), "integer")},
          ("Set the {room} to {degrees} degrees.", "Heat the {room} to {degrees} degrees.",
           "Make the {room} {degrees} degrees warm.", "Temperature in the {room}: {degrees} degrees, please."),
          ("I would enjoy {degrees} degrees in the {room}.", "Warm up the {room} until it has {degrees}."),
          lambda c: {"room": c.term(ROOMS), "degrees": c.rng.randrange(15, 27)}, lambda c: {"status": "ok"},
          "The {room} is set to {degrees} degrees."),
    _tool(("find_contact", "search_contact", "phone_book"), "Find a person's contact data", {"name": (("name", "person"), "string")},
          ("Find the contact of {name}.", "What is the phone number of {name}?", "Look up {name}.", "How can I reach {name}?"),
          ("I have to ring {name}.", "Dig up the details of {name}."),
          lambda c: {"name": c.full_name()}, lambda c: {"phone": c.phone()}, "The number of {name} is {phone}."),
    _tool(("create_ticket", "open_ticket", "report_issue"), "Open a support ticket",
          {"title": (("title", "summary", "subject"), "string"), "priority": (("priority", "level"), "string")},
          ("Create a ticket: {title}. Priority {priority}.", 'Open a {priority} priority ticket "{title}".',
           "Report an issue: {title}, priority {priority}."),
          ("Somebody has to fix this: {title}. I rate it {priority}.", "Log {title} as {priority}."),
          lambda c: {"title": f"{c.invented()} {c.rng.choice(('is slow', 'does not start', 'is broken', 'shows an error'))}",
                     "priority": c.rng.choice(("low", "medium", "high"))},
          lambda c: {"ticket": c.code()}, "Ticket {ticket} was opened."),
    _tool(("search_flights", "find_flight", "flights"), "Search for flights",
          {"origin": (("from", "origin", "departure"), "string"), "target": (("to", "destination", "arrival"), "string"),
           "day": (("day", "date"), "string")},
          ("Find a flight from {origin} to {target} on {day}.", "Search flights {origin} to {target}, {day}.",
           "I want to fly from {origin} to {target} on {day}.", "Flights to {target} from {origin} on {day}?"),
          ("Get me by plane out of {origin} and into {target}, {day}.", "{day} I leave {origin} for {target} by air."),
          lambda c: dict(zip(("origin", "target", "day"), _two_cities(c) + [c.rng.choice(WEEKDAYS)])),
          lambda c: {"flight": c.code(), "departure": c.time()},
          "Flight {flight} leaves {origin} at {departure}."),
)
NO_TOOL_ASKS = Phrasing(
    ("Write a poem about {x}.", "Paint a picture of {x}.", "Who invented the {x}?", "Tell me a story about {x}.",
     "Cook some {x}.", "What is the meaning of {x}?", "Buy a {x} for me.", "Repair my {x}.", "Sing a song about {x}."),
    ("Compose an opera on {x}.", "Fold me a paper {x}.", "Recommend a film featuring {x}."))
TOOL_SYSTEM = ("You are a helpful assistant.", "You can call tools.", "Use a tool where one fits.", "You help with office work.")


def _two_cities(c):
    a = b = c.city()
    while b == a:
        b = c.city()
    return [a, b]


def _function_name(c, tool):
    """A usual name, the last of which is held out, or one that can only be copied."""
    rng = c.rng
    style = rng.random()
    if style < 0.5:
        return tool.names[-1] if c.held_out and rng.random() < 0.5 else rng.choice(tool.names[:-1])
    name = rng.choice(tool.names[:-1])
    if style < 0.65:
        return f"{c.invented()}_{name}" if rng.random() < 0.5 else f"{name}_{c.invented()}"
    if style < 0.8:
        return f"{c.invented()}_{c.invented()}"
    if style < 0.9:  # camelCase
        return name.split("_")[0] + "".join(p.capitalize() for p in name.split("_")[1:] + [c.invented()])
    return c.invented()


def _definition(c, tool):
    """(OpenAI-style definition, parameter name by role); names vary so that the definition has to be read."""
    rng = c.rng
    roles = {role: rng.choice(names) for role, (names, _) in tool.parameters.items()}
    if len(set(roles.values())) < len(roles):
        roles = {role: names[0] for role, (names, _) in tool.parameters.items()}
    roles = {role: f"{c.invented(1)}_{name}" if rng.random() < 0.08 else name for role, name in roles.items()}
    properties = {roles[role]: {"type": kind} for role, (_, kind) in tool.parameters.items()}
    if rng.random() < 0.3:
        for key, value in properties.items():
            value["description"] = f"The {key.replace('_', ' ')}"
    function = {"name": _function_name(c, tool), "description": tool.description,
                "parameters": {"type": "object", "properties": properties, "required": list(properties)}}
    return {"type": "function", "function": function}, roles


def call_text(name, arguments):
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>{call}</tool_call>"


def _offer(c, tool):
    """(definitions in random order, the wanted tool's definition, its parameter names)"""
    rng = c.rng
    wanted, roles = _definition(c, tool)
    definitions, used = [wanted], {wanted["function"]["name"]}
    for other in rng.sample(TOOLS, rng.choice((0, 1, 1, 2, 2, 3))):
        definition, _ = _definition(c, other)
        if other is not tool and definition["function"]["name"] not in used:
            used.add(definition["function"]["name"])
            definitions.append(definition)
    rng.shuffle(definitions)
    return definitions, wanted, roles


def _opening(c):
    return [{"role": "system", "content": c.rng.choice(TOOL_SYSTEM)}] if c.rng.random() < 0.4 else []


def call(c, unseen=False):
    rng = c.rng
    tool = rng.choice(TOOLS)
    definitions, wanted, roles = _offer(c, tool)
    values = tool.draw(c)
    ask = tool.asks.pick(rng, unseen).format(**values)
    answer = call_text(wanted["function"]["name"], {roles[r]: v for r, v in values.items()})
    messages = _opening(c) + [{"role": "user", "content": ask[0].upper() + ask[1:]}, {"role": "assistant", "content": answer}]
    return Sample("tool_call", messages, tools=definitions, grade="tool", standalone=True)


def result(c, unseen=False):
    """The turn after the tool has answered."""
    rng = c.rng
    tool = rng.choice(TOOLS)
    definitions, wanted, roles = _offer(c, tool)
    values, outcome = tool.draw(c), tool.result(c)
    ask = tool.asks.pick(rng, unseen).format(**values)
    messages = _opening(c) + [{"role": "user", "content": ask[0].upper() + ask[1:]}]
    messages.append({"role": "assistant", "content": call_text(wanted["function"]["name"],
                                                                  {roles[r]: v for r, v in values.items()})})
    messages.append({"role": "tool", "content": json.dumps(outcome, ensure_ascii=False)})
    messages.append({"role": "assistant", "content": tool.tell.format(**{**values, **outcome})})
    return Sample("tool_result", messages, tools=definitions, standalone=True)


def no_tool(c, unseen=False):
    rng = c.rng
    definitions, _, _ = _offer(c, rng.choice(TOOLS))
    thing = rng.choice((c.term(FOODS), c.term(PLACES), c.invented()))
    messages = _opening(c) + [{"role": "user", "content": NO_TOOL_ASKS.pick(rng, unseen).format(x=thing)},
                              {"role": "assistant", "content": NO_TOOL}]
    return Sample("tool_none", messages, tools=definitions, standalone=True)
