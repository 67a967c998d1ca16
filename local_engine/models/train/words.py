"""Word lists and invented words: the content of the synthetic data, split into training and held-out."""

import zlib

FIRST_NAMES = (
    "Ana", "Ben", "Clara", "David", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Liam",
    "Mara", "Nils", "Olga", "Pavel", "Quinn", "Rosa", "Samir", "Tina", "Umar", "Vera", "Walid", "Xenia",
    "Yara", "Zoe", "Aisha", "Bruno", "Chen", "Daria", "Emil", "Fatima", "Gabriel", "Hana", "Ivan", "Julia",
    "Kofi", "Lena", "Mateo", "Nadia", "Oscar", "Priya", "Rafael", "Sofia", "Tomas", "Ursula", "Viktor",
    "Wendy", "Yusuf", "Amara", "Björn", "Chloé", "Dilan", "Esra", "Felix", "Giulia", "Henrik", "Isabel",
    "Jakub", "Karin", "Luca", "Mei", "Noah", "Omar", "Petra", "Ravi", "Selma", "Theo", "Uma", "Vincent",
    "Wanda", "Zara", "Alma", "Boris", "Carmen", "Dmitri", "Eva", "Finn", "Gloria", "Haruto", "Irene", "José",
    "Katja", "Leo", "Maya", "Nora", "Otto", "Paula", "Rui", "Sara", "Tariq", "Ulla", "Valentin", "Willem",
    "Anton", "Bella", "Cyril", "Dora", "Edgar", "Frida", "Goran", "Helga", "Igor", "Jana", "Klaus", "Lucía",
    "Marek", "Nina", "Oleg", "Pia", "Ruben", "Signe", "Tobias", "Vanessa", "Werner", "Yuki", "Zlatan", "Maria",
    "John", "Mary", "Peter", "Lucy", "Mark", "Anna", "Paul", "Emma", "Tom", "Kate", "James", "Alice", "Bob",
)
LAST_NAMES = (
    "Adler", "Berg", "Costa", "Dubois", "Eriksson", "Fischer", "Garcia", "Haddad", "Ivanov", "Jensen", "Kaya",
    "Lopez", "Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Silva", "Tanaka", "Urban", "Vargas",
    "Weber", "Xu", "Yilmaz", "Zeman", "Almeida", "Braun", "Chandra", "Dahl", "Esposito", "Ferrari", "Gupta",
    "Hansen", "Ito", "Jovic", "Khan", "Larsen", "Mensah", "Nagy", "Olsen", "Pereira", "Rahman", "Santos", "Toth",
    "Ueda", "Varga", "Wagner", "Young", "Zhang", "Andersson", "Bianchi", "Cohen", "Diaz", "Egger", "Fontana",
    "Gruber", "Horvat", "Iqbal", "Jansen", "Kovac", "Lindqvist", "Müller", "Nowak", "Ortiz", "Popescu", "Reyes",
    "Schmidt", "Torres", "Vogel", "Wong", "Zimmer", "Abe", "Bauer", "Cruz", "Demir", "Engel", "Fuchs", "Green",
    "Hoffmann", "Ibarra", "Jung", "Keller", "Lang", "Marin", "Nielsen", "Owens", "Park", "Romano", "Sato", "Tran",
    "Vidal", "Wolf", "Brown", "Smith", "Jones", "Clark", "Baker", "Hill", "Wood", "Stone", "Gómez", "Sørensen",
)
CITIES = (
    "Lisbon", "Oslo", "Vienna", "Prague", "Madrid", "Rome", "Berlin", "Paris", "London", "Dublin", "Athens",
    "Helsinki", "Stockholm", "Warsaw", "Budapest", "Zagreb", "Sofia", "Tallinn", "Riga", "Vilnius", "Porto",
    "Lyon", "Turin", "Graz", "Basel", "Bergen", "Malmö", "Gdansk", "Brno", "Split", "Seville", "Bilbao", "Naples",
    "Hamburg", "Munich", "Cologne", "Leeds", "York", "Cork", "Nairobi", "Lagos", "Accra", "Cairo", "Tunis", "Dakar",
    "Lima", "Quito", "Bogota", "Santiago", "Montevideo", "Toronto", "Montreal", "Boston", "Chicago", "Denver",
    "Seattle", "Austin", "Phoenix", "Tokyo", "Osaka", "Kyoto", "Seoul", "Busan", "Hanoi", "Manila", "Jakarta",
    "Delhi", "Mumbai", "Pune", "Karachi", "Dhaka", "Sydney", "Perth", "Auckland", "Zürich", "Geneva", "Ghent",
    "Utrecht", "Aarhus", "Tampere", "New York", "San Diego", "Cape Town", "Hong Kong", "Buenos Aires", "Singapore",
)
# country -> capital: also the table behind the capital questions.
CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Spain": "Madrid", "Italy": "Rome", "Portugal": "Lisbon",
    "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki", "Denmark": "Copenhagen", "Poland": "Warsaw",
    "Austria": "Vienna", "Hungary": "Budapest", "Greece": "Athens", "Ireland": "Dublin", "Japan": "Tokyo",
    "China": "Beijing", "India": "New Delhi", "Egypt": "Cairo", "Kenya": "Nairobi", "Ghana": "Accra",
    "Canada": "Ottawa", "Mexico": "Mexico City", "Brazil": "Brasilia", "Peru": "Lima", "Chile": "Santiago",
    "Argentina": "Buenos Aires", "Australia": "Canberra", "Turkey": "Ankara", "Ukraine": "Kyiv", "Russia": "Moscow",
    "Belgium": "Brussels", "Switzerland": "Bern", "Croatia": "Zagreb", "Serbia": "Belgrade", "Romania": "Bucharest",
    "Bulgaria": "Sofia", "Estonia": "Tallinn", "Latvia": "Riga", "Lithuania": "Vilnius", "Cuba": "Havana",
    "South Korea": "Seoul", "Vietnam": "Hanoi", "Thailand": "Bangkok", "Indonesia": "Jakarta", "Iran": "Tehran",
    "Iraq": "Baghdad", "Tunisia": "Tunis", "Morocco": "Rabat", "Senegal": "Dakar", "Nigeria": "Abuja",
    "Iceland": "Reykjavik", "England": "London", "the United Kingdom": "London", "the Netherlands": "Amsterdam",
    "the United States": "Washington", "the Czech Republic": "Prague", "New Zealand": "Wellington",
    "Slovenia": "Ljubljana", "Slovakia": "Bratislava", "Colombia": "Bogota",
}
COUNTRIES = tuple(c for c in CAPITALS if not c.startswith("the "))
STREETS = (
    "Oak", "Maple", "Mill", "Station", "Church", "Garden", "River", "Hill", "Park", "Market", "Bridge", "Castle",
    "School", "King", "Queen", "Lake", "Forest", "Spring", "Harbour", "Meadow", "Cedar", "Elm", "Birch", "Willow",
    "Rose", "Sunset", "North", "South", "Victoria", "Granite", "Orchard", "Chapel", "Tower", "Linden", "Poplar",
)
STREET_KINDS = ("Street", "Road", "Avenue", "Lane", "Square", "Way", "Drive", "Court")
PRODUCTS = (
    "desk lamp", "office chair", "coffee mug", "water bottle", "phone case", "laptop stand", "notebook", "backpack",
    "garden hose", "bicycle helmet", "rain jacket", "wool blanket", "kitchen scale", "tea kettle", "bread knife",
    "frying pan", "wall clock", "picture frame", "floor mat", "bath towel", "pillow", "desk fan", "power bank",
    "USB cable", "keyboard", "mouse pad", "monitor", "webcam", "headset", "printer", "paper tray", "ink cartridge",
    "tool box", "hammer", "screwdriver", "paint brush", "ladder", "flower pot", "watering can", "tent",
    "sleeping bag", "camp stove", "travel mug", "suitcase", "umbrella", "sun hat", "running shoe", "yoga mat",
    "jump rope", "dumbbell", "tennis ball", "football", "chess set", "puzzle", "board game", "toy train", "doll house",
    "crayon set", "story book", "cook book", "map", "compass", "flashlight", "battery pack", "solar panel", "door bell",
    "smoke alarm", "air filter", "vacuum cleaner", "toaster", "blender", "rice cooker", "coffee grinder", "egg timer",
    "candle", "vase", "mirror", "shoe rack", "side table", "bar stool", "curtain", "rug", "desk", "sofa", "tablet",
)
SOFTWARE = (
    "Calendar", "Mail Client", "Invoice Tool", "Photo Editor", "Backup Agent", "Chat App", "Web Shop", "Map Viewer",
    "Report Builder", "Login Portal", "Music Player", "File Sync", "Task Board", "Note Pad", "Time Tracker",
    "Video Call", "Scanner", "Payroll", "Stock Monitor", "Form Designer", "Survey Tool", "Budget Planner",
    "Password Vault", "Data Export", "Search Service", "Print Server", "Print Manager", "Ticket Desk", "Code Review",
    "Help Center",
)
PLATFORMS = ("Linux", "Windows", "macOS", "Android", "iOS", "Debian", "Ubuntu", "Firefox", "Chrome", "Safari")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
COLORS = ("red", "blue", "green", "yellow", "black", "white", "orange", "purple", "brown", "grey", "pink")
JOBS = (
    "teacher", "nurse", "pilot", "baker", "farmer", "lawyer", "painter", "plumber", "chef", "doctor", "engineer",
    "writer", "singer", "driver", "tailor", "gardener", "carpenter", "librarian", "dentist", "electrician", "actor",
    "waiter", "translator", "photographer", "mechanic", "sailor", "judge", "florist", "barber", "potter",
)
ANIMALS = (
    "dog", "cat", "rabbit", "parrot", "horse", "turtle", "hamster", "goat", "pony", "goldfish", "snake", "canary",
    "donkey", "duck", "ferret", "sheep", "hen", "lizard",
)
HOBBIES = (
    "chess", "tennis", "painting", "hiking", "swimming", "cooking", "reading", "sailing", "dancing", "gardening",
    "cycling", "fishing", "knitting", "climbing", "photography", "skiing", "running", "pottery", "singing", "rowing",
)
FOODS = (
    "bread", "cheese", "apples", "pears", "soup", "rice", "pasta", "olives", "grapes", "honey", "eggs", "milk",
    "tomatoes", "carrots", "potatoes", "onions", "beans", "nuts", "plums", "oranges", "yoghurt", "fish", "salad",
    "pancakes", "lemons", "peaches", "spinach", "mushrooms", "cherries", "butter",
)
PLACES = (
    "museum", "library", "bakery", "station", "harbour", "school", "theatre", "hospital", "market", "stadium",
    "factory", "castle", "hotel", "garden", "bridge", "airport", "cinema", "church", "office", "zoo", "restaurant",
    "gallery", "warehouse", "pharmacy",
)
CURRENCIES = (("$", "dollars", "USD"), ("€", "euros", "EUR"), ("£", "pounds", "GBP"))
NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_ONSETS = ("b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "j", "k", "kl", "l", "m", "n", "p", "pr", "qu", "r",
           "s", "sh", "sk", "st", "t", "th", "tr", "v", "w", "y", "z", "")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "io", "ou", "ee")
_CODAS = ("", "", "", "n", "r", "s", "l", "m", "t", "nd", "rk", "x", "ck", "st", "ng")


def is_held_out(key):
    """True for the eighth of all invented words, numbers and dates that training never sees."""
    return zlib.crc32(key.encode()) % 8 == 0


class Content:
    """Draws content from one side of the split: training, or held out. `rng` is a random.Random."""

    def __init__(self, rng, held_out):
        self.rng = rng
        self.held_out = held_out

    def pick(self, items):
        """One entry of a list of which every sixth is held out."""
        while True:
            i = self.rng.randrange(len(items))
            if (i % 6 == 5) == self.held_out:
                return items[i]

    def allowed(self, key):
        return is_held_out(key) == self.held_out

    def invented(self, syllables=None):
        """A lower-case word that no list has, so that copying is learned and not the list."""
        rng = self.rng
        while True:
            word = "".join(
                rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS)
                for _ in range(syllables or rng.choice((1, 2, 2, 3)))
            )
            if 3 <= len(word) <= 12 and self.allowed(word):
                return word

    def code(self):
        """An identifier such as AB-1234 or 77120."""
        rng = self.rng
        letters = "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(rng.choice((1, 2, 2, 3))))
        digits = "".join(rng.choice("0123456789") for _ in range(rng.choice((3, 4, 4, 5, 6))))
        while True:
            text = rng.choice((letters + "-" + digits, letters + digits, digits, "#" + digits,
                               digits + "-" + letters))
            if self.allowed(text):
                return text
            digits = "".join(rng.choice("0123456789") for _ in range(len(digits)))

    def term(self, items):
        """A word of the list or an invented one. What an answer copies must not be learned as a list."""
        return self.pick(items) if self.rng.random() < 0.45 else self.invented()

    def invented_name(self):
        """One or two invented words with capitals, or an abbreviation with a word."""
        rng = self.rng
        words = [self.invented().capitalize() for _ in range(rng.choice((1, 1, 2)))]
        if rng.random() < 0.12:
            words[0] = "".join(rng.choice("ABCDEFGHIKLMNOPRSTUVWX") for _ in range(rng.choice((2, 3, 4))))
        return " ".join(words)

    def first_name(self):
        return self.pick(FIRST_NAMES) if self.rng.random() < 0.5 else self.invented().capitalize()

    def last_name(self):
        return self.pick(LAST_NAMES) if self.rng.random() < 0.5 else self.invented().capitalize()

    def full_name(self):
        middle = self.rng.choice((f" {self.first_name()}", " van", " de", f" {self.rng.choice('ABDEHJKLMR')}."))
        return f"{self.first_name()}{middle if self.rng.random() < 0.1 else ''} {self.last_name()}"

    def city(self):
        return self.pick(CITIES) if self.rng.random() < 0.5 else self.invented_name()

    def company(self):
        kind = self.rng.choice(("Ltd", "GmbH", "Inc", "Group", "Labs", "Works", "Foods", "Travel", "Bank", ""))
        return f"{self.last_name()} {kind}".strip()

    def product(self):
        rng = self.rng
        item = self.pick(PRODUCTS) if rng.random() < 0.45 else self.invented()
        if rng.random() < 0.25:
            item = f"{item} {self.invented()}"
        if rng.random() < 0.06:
            item = "".join(rng.choice("ABCDEFGHIKLMNOPRSTUVWX") for _ in range(3)) + " " + item
        return f"{rng.choice(COLORS)} {item}" if rng.random() < 0.25 else item

    def email(self):
        rng = self.rng
        user = self.first_name().lower() if rng.random() < 0.5 else self.invented()
        user += rng.choice(("", "", ".", "_", "-")) + (self.invented(1) if rng.random() < 0.5 else str(rng.randrange(100)))
        return f"{user}@{self.invented()}.{rng.choice(('com', 'org', 'net', 'example', 'de', 'io'))}"

    def phone(self):
        rng = self.rng
        groups = (f"{rng.randrange(100, 1000)}", f"{rng.randrange(100, 1000)}", f"{rng.randrange(1000, 10000)}")
        return rng.choice(("", f"+{rng.randrange(1, 99)} ")) + rng.choice((" ", "-")).join(groups)

    def date(self):
        """(year, month, day)"""
        rng = self.rng
        while True:
            date = (rng.randrange(1950, 2050), rng.randrange(1, 13), rng.randrange(1, 29 if rng.random() < 0.8 else 31))
            if date[1] == 2 and date[2] > 28:
                continue
            if self.allowed("%04d-%02d-%02d" % date):
                return date

    def time(self):
        return f"{self.rng.randrange(24):02d}:{self.rng.choice((0, 0, 15, 30, 45, self.rng.randrange(60))):02d}"

    def price(self):
        rng = self.rng
        return rng.choice((rng.randrange(1, 1000), rng.randrange(100, 30000) / 100, rng.randrange(10, 2000) / 10))


def plural(noun):
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    if noun.endswith("knife"):
        return noun[:-2] + "ves"
    return noun + "s"


def article(noun):
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun


def spoken_date(rng, date):
    year, month, day = date
    name = MONTHS[month - 1]
    return rng.choice((f"{day} {name} {year}", f"{name} {day}, {year}", f"{day} {name[:3]} {year}",
                       "%04d-%02d-%02d" % date))
