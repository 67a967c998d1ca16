"""Fields of an order, ticket, address, meeting or contact as JSON; what the text lacks is null."""

import json

from sample import Phrasing, compose, listing
from words import (CITIES, COUNTRIES, CURRENCIES, JOBS, NUMBER_WORDS, PLACES, PLATFORMS, SOFTWARE, STREET_KINDS,
                   STREETS, WEEKDAYS, plural, spoken_date)

INSTRUCTIONS = Phrasing(
    seen=(
        "Extract {keys} from the {doc} as JSON.",
        "Extract the following fields as JSON: {keys}.",
        "Extract the fields {keys} from this {doc}. Answer with JSON only.",
        "Return a JSON object with the keys {keys}.",
        "Return {keys} as JSON.",
        "Read the {doc} and return JSON with {keys}.",
        "Read the {doc} and give me {keys} as a JSON object.",
        "Get {keys} out of this {doc}. Answer with JSON only.",
        "Get the fields {keys} as JSON.",
        "Which {keys} does the {doc} give? Reply in JSON.",
        "You extract data from a {doc}. Output JSON with the fields {keys}.",
        "You are an extraction service. Output JSON with {keys}; use null when a field is missing.",
        "Parse the {doc} into JSON with the fields {keys}. Missing values are null.",
        "Parse this {doc}. JSON keys: {keys}.",
        "Find {keys} in the {doc}. Format: JSON.",
        "Write the {keys} of this {doc} as JSON.",
        "Convert the {doc} to JSON with keys {keys}.",
        "Fill in this JSON from the {doc}: {skeleton}",
        "Extract the data in the form {skeleton}",
        "Give the {doc} as JSON of this shape: {skeleton}",
        "Extract {keys}. Unknown fields are null. Only output JSON.",
        "Collect {keys} from the {doc}, as JSON, null for what is missing.",
    ),
    unseen=(
        "Turn the {doc} into a record holding {keys}.",
        "I need {keys} as a machine-readable object.",
        "Structure this {doc} for our database. Columns: {keys}.",
        "What are the values of {keys}? Put them in curly braces.",
        "Transcribe {keys} to JSON, leaving null where nothing is stated.",
        "Pull {keys} from what follows; respond with a JSON dictionary.",
        "Kindly prepare {keys}, encoded in JSON notation.",
        "Summarise the {doc} as key-value data ({keys}).",
    ),
)
NOISE = ("Thank you!", "Thanks in advance.", "Please confirm.", "Have a nice day.", "Hope you are well.",
         "This is my second message.", "Let me know if you need more.", "I am looking forward to it.",
         "Sorry for the trouble.", "Best regards.", "It is quite important to me.", "As we said on the phone.",
         "No need to call.", "We talked about this last week.", "🙂", "Many thanks 🙏", "See the attached file.")


def _join(rng, core, extras):
    """The core sentence with the other sentences around it in random order, and some noise."""
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        extras.append(rng.choice(NOISE))
    rng.shuffle(extras)
    cut = rng.randrange(len(extras) + 1) if rng.random() < 0.4 else 0
    return rng.choice((" ", " ", " ", "\n")).join(extras[:cut] + [core] + extras[cut:])


def order(c):
    rng = c.rng
    name, item, n = c.full_name() if rng.random() < 0.7 else c.first_name(), c.product(), rng.randrange(1, 60)
    value = {"customer": None, "item": item, "quantity": None, "price": None, "order_id": None, "city": None, "date": None}
    count = NUMBER_WORDS[n] if n <= 12 and rng.random() < 0.4 else str(n)
    items = item if n == 1 else plural(item)
    kind = rng.random()
    if kind < 0.45:
        value.update(customer=name, quantity=n)
        core = rng.choice((
            f"{name} ordered {count} {items}.", f"{name} wants to buy {count} {items}.",
            f"Hello, this is {name}. I would like {count} {items}.", f"New order from {name}: {count} {items}.",
            f"{count} {items} for {name}.", f"Customer: {name}. Item: {item}. Quantity: {n}.",
            f"Please send {count} {items} to {name}.", f"We received an order by {name} for {count} {items}.",
            f"My name is {name} and I need {count} {items}.", f"{name} bought {count} x {item}."))
    elif kind < 0.65:
        value.update(quantity=n)
        core = rng.choice((f"I want to order {count} {items}.", f"Please send {count} {items}.",
                           f"Order: {n} x {item}.", f"We need {count} {items}.", f"{count} {items} were ordered."))
    elif kind < 0.9:
        value.update(customer=name)
        core = rng.choice((f"{name} asks for the {item}.", f"The {item} is for {name}.",
                           f"{name} would like to order the {item}.", f"Buyer {name}, product {item}."))
    else:
        core = rng.choice((f"Someone ordered the {item}.", f"The {item} should be sent soon.",
                           f"I would like the {item} from your shop."))
    if value["quantity"] == 1 and count == "1" and core.find(" x ") < 0 and rng.random() < 0.5:
        core = core.replace(f"1 {item}", f"one {item}")
    extras = []
    if rng.random() < 0.55:
        price = c.price()
        sign, word, _ = rng.choice(CURRENCIES)
        shown = f"{price:.2f}" if isinstance(price, float) else str(price)
        value["price"] = float(shown) if "." in shown else price
        extras.append(rng.choice((f"The price is {sign}{shown}.", f"Total: {shown} {word}.", f"It costs {shown} {word}.",
                                  f"We agreed on {sign}{shown}.", f"Price: {sign}{shown}")))
    if rng.random() < 0.45:
        value["order_id"] = code = c.code()
        extras.append(rng.choice((f"Order number {code}.", f"Order {code}.", f"The order id is {code}.",
                                  f"Reference: {code}", f"Your reference is {code}.")))
    if rng.random() < 0.4:
        value["city"] = city = c.city()
        extras.append(rng.choice((f"Ship it to {city}.", f"Delivery to {city}, please.", f"It goes to {city}.",
                                  f"The delivery city is {city}.")))
    if rng.random() < 0.35:
        value["date"] = date = rng.choice((spoken_date(rng, c.date()), rng.choice(WEEKDAYS)))
        extras.append(rng.choice((f"It should arrive on {date}.", f"Deliver on {date}.", f"Delivery date: {date}.",
                                  f"We need it on {date}.")))
    return _join(rng, core, extras), value


def ticket(c):
    rng = c.rng
    name, product = c.full_name(), c.pick(SOFTWARE) if rng.random() < 0.45 else c.invented_name()
    value = {"reporter": None, "product": product, "version": None, "error_code": None, "platform": None, "email": None,
             "date": None}
    version = f"{rng.randrange(1, 20)}.{rng.randrange(10)}" + (f".{rng.randrange(30)}" if rng.random() < 0.4 else "")
    with_version = product
    if rng.random() < 0.5:
        value["version"] = version
        with_version = rng.choice((f"{product} {version}", f"{product} version {version}", f"{product} (v{version})"))
    trouble = rng.choice(("does not start", "crashes", "is very slow", "shows an empty page", "loses my changes",
                          "cannot save", "freezes", "shows the wrong total", "stopped syncing", "closes by itself"))
    core = f"{with_version} {trouble}"
    if rng.random() < 0.45:
        value["platform"] = platform = rng.choice(PLATFORMS)
        core += rng.choice((f" on {platform}", f" when I use {platform}", f" under {platform}"))
    if rng.random() < 0.5:
        value["error_code"] = code = rng.choice((c.code(), f"E{rng.randrange(100, 1000)}", str(rng.randrange(400, 600))))
        core += rng.choice((f" with error {code}", f" and says error {code}", f", error code {code}"))
    core += "."
    extras = []
    if rng.random() < 0.6:
        value["reporter"] = name
        extras.append(rng.choice((f"I am {name}.", f"Reported by {name}.", f"My name is {name}.", f"Regards, {name}",
                                  f"{name} reported this.", f"From: {name}")))
    if rng.random() < 0.5:
        value["email"] = email = c.email()
        extras.append(rng.choice((f"Write to {email}.", f"My mail is {email}", f"Contact: {email}",
                                  f"You can reach me at {email}.")))
    if rng.random() < 0.35:
        value["date"] = date = rng.choice((spoken_date(rng, c.date()), rng.choice(WEEKDAYS)))
        extras.append(rng.choice((f"It began on {date}.", f"First seen on {date}.", f"Since {date}.")))
    return _join(rng, core, extras), value


def address(c):
    rng = c.rng
    value = {"name": None, "street": None, "number": None, "postal_code": None, "city": c.city(), "country": None}
    line = []
    if rng.random() < 0.8:
        stem = c.pick(STREETS) if rng.random() < 0.6 else c.invented().capitalize()
        value["street"] = street = f"{stem} {rng.choice(STREET_KINDS)}"
        if rng.random() < 0.85:
            value["number"] = number = str(rng.randrange(1, 400)) + rng.choice(("", "", "", "a", "B", "c"))
            line.append(rng.choice((f"{number} {street}", f"{street} {number}")))
        else:
            line.append(street)
    town = value["city"]
    if rng.random() < 0.65:
        value["postal_code"] = code = rng.choice((str(rng.randrange(10000, 99999)), str(rng.randrange(1000, 9999)),
                                                  f"{rng.choice('ABENSW')}{rng.randrange(1, 20)} {rng.randrange(1, 9)}"
                                                  f"{rng.choice('ABDEH')}{rng.choice('JLNPQ')}"))
        town = rng.choice((f"{code} {town}", f"{town} {code}", f"{town}, {code}"))
    line.append(town)
    if rng.random() < 0.5:
        value["country"] = country = c.pick(COUNTRIES) if rng.random() < 0.6 else c.invented_name()
        line.append(country)
    if rng.random() < 0.65:
        value["name"] = name = c.full_name() if rng.random() < 0.75 else c.company()
        if rng.random() < 0.5:
            return rng.choice((", ", "\n")).join([name] + line), value
        body = ", ".join(line)
        return rng.choice((f"{name} lives at {body}.", f"Please send the parcel to {name}, {body}.",
                           f"The new address of {name} is {body}.", f"{name} moved to {body}.",
                           f"Ship to: {name}, {body}")), value
    body = rng.choice((", ", ", ", "\n")).join(line)
    return rng.choice((body, f"Address: {body}", f"Our office is at {body}.", f"Deliver to {body}",
                       f"You find us at {body}.")), value


def meeting(c):
    rng = c.rng
    topic = f"{rng.choice(('budget', 'design', 'sales', 'safety', 'team', 'project', 'hiring', c.invented()))} " \
            f"{rng.choice(('review', 'meeting', 'workshop', 'call', 'lunch', 'training'))}"
    value = {"title": topic, "date": None, "time": None, "place": None, "organizer": None}
    core = f"The {topic} takes place"
    if rng.random() < 0.7:
        value["date"] = date = rng.choice((spoken_date(rng, c.date()), rng.choice(WEEKDAYS)))
        core += f" on {date}"
    if rng.random() < 0.6:
        value["time"] = time = c.time()
        core += f" at {time}"
    if rng.random() < 0.6:
        value["place"] = place = rng.choice((f"room {rng.randrange(1, 400)}", f"the {c.term(PLACES)}", c.city()))
        core += f" in {place}"
    if rng.random() < 0.5:
        core = core.replace(f"The {topic} takes place", rng.choice((f"Invitation: {topic}", f"We have a {topic}",
                                                                    f"Please join the {topic}")))
    extras = []
    if rng.random() < 0.55:
        value["organizer"] = name = c.full_name() if rng.random() < 0.6 else c.first_name()
        extras.append(rng.choice((f"{name} organizes it.", f"Organizer: {name}", f"It is led by {name}.",
                                  f"{name} is the host.")))
    return _join(rng, core + ".", extras), value


def contact(c):
    rng = c.rng
    name = c.full_name()
    value = {"name": name, "company": None, "job": None, "email": None, "phone": None, "city": None}
    core = rng.choice((f"{name}", f"Contact {name}", f"This is {name}", f"I met {name}"))
    if rng.random() < 0.55:
        value["job"] = job = c.term(JOBS)
        core += f", {job}"
    if rng.random() < 0.55:
        value["company"] = company = c.company()
        core += rng.choice((f" at {company}", f" from {company}", f", {company}"))
    extras = []
    if rng.random() < 0.55:
        value["email"] = email = c.email()
        extras.append(rng.choice((f"Email: {email}", f"The mail address is {email}", f"Write to {email}.")))
    if rng.random() < 0.5:
        value["phone"] = phone = c.phone()
        extras.append(rng.choice((f"Phone: {phone}", f"Call {phone}.", f"The number is {phone}.")))
    if rng.random() < 0.4:
        value["city"] = city = c.city()
        extras.append(rng.choice((f"Based in {city}.", f"City: {city}", f"The office is in {city}.")))
    return _join(rng, core + ".", extras), value


DOCUMENTS = {
    "order": (order, ("order", "order", "message", "text", "mail")),
    "ticket": (ticket, ("ticket", "ticket", "report", "message", "text")),
    "address": (address, ("address", "address", "text", "line")),
    "meeting": (meeting, ("invitation", "message", "text", "note")),
    "contact": (contact, ("contact", "note", "text", "message")),
}
# Other names under which a schema may ask for a field.
ALIASES = {
    "customer": ("customer", "customer", "buyer", "name", "customer_name"), "item": ("item", "item", "product", "article"),
    "quantity": ("quantity", "quantity", "amount", "count"), "price": ("price", "price", "total", "cost"),
    "order_id": ("order_id", "order_id", "order_number", "reference"), "reporter": ("reporter", "reporter", "name", "user"),
    "error_code": ("error_code", "error_code", "error", "code"), "platform": ("platform", "platform", "system"),
    "postal_code": ("postal_code", "postal_code", "zip", "postcode"), "number": ("number", "house_number"),
    "date": ("date",), "title": ("title", "title", "event", "topic"), "place": ("place", "place", "location"),
    "organizer": ("organizer", "host"), "job": ("job", "role"), "phone": ("phone", "phone_number"),
}


def make(c, unseen=False, document=None):
    rng = c.rng
    kind = document or rng.choice(tuple(DOCUMENTS))
    writer, nouns = DOCUMENTS[kind]
    text, value = writer(c)
    fields = rng.sample(sorted(value), rng.randrange(2, len(value) + 1))
    if rng.random() < 0.6:  # most schemas list their fields in the usual order
        fields = [f for f in value if f in fields]
    names = [rng.choice(ALIASES.get(f, (f,))) for f in fields]
    if len(set(names)) < len(names):
        names = fields
    phrasing = INSTRUCTIONS.pick(rng, unseen)
    instruction = phrasing.format(
        keys=listing(rng, names), doc=rng.choice(nouns),
        skeleton=json.dumps({n: rng.choice(("...", "")) for n in names}))
    answer = json.dumps({n: value[f] for n, f in zip(names, fields)}, ensure_ascii=False)
    return compose(rng, f"extract_{kind}", instruction, text, answer, grade="json", phrasing=phrasing)
