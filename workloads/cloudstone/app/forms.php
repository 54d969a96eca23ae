<?php
// What the application changes: forms, and what becomes of them.
declare(strict_types=1);

// Of each form its fields in the order of the table's columns: label, most letters, and more for the browser.
const ADDRESS = ['street1' => ['Street', 80], 'street2' => ['Street, second line', 80], 'city' => ['City', 40],
    'state' => ['State', 20], 'zip' => ['ZIP code', 10], 'country' => ['Country', 40]];
const LOGIN = ['username' => ['Name', 30], 'password' => ['Password', 100, 'type="password"']];
const PERSON = LOGIN + ['firstname' => ['First name', 30], 'lastname' => ['Last name', 30],
    'email' => ['E-mail', 80, 'type="email"'], 'telephone' => ['Telephone', 20], 'summary' => ['About you', 1000],
    'timezone' => ['Time zone', 40]];
const EVENT = ['title' => ['Title', 100], 'summary' => ['In short', 200], 'description' => ['Description', 2000],
    'telephone' => ['Telephone', 20], 'takes_place' => ['When', 16, 'type="datetime-local"'],
    'tags' => ['Tags, with spaces between', 200]];
const PICTURE = ['picture' => ['Picture', 0, 'type="file" accept="image/png"']];
const LITERATURE = ['literature' => ['Something to read', 0, 'type="file" accept="text/plain"']];

/** A form with some fields, which is sent to a path. */
function form(string $path, array $fields, string $button): string
{
    $inputs = '';
    foreach ($fields as $name => $field) {
        $more = ($field[2] ?? '') . ($name === 'street2' ? '' : ' required');
        $inputs .= "<label>$field[0] <input name=\"$name\" $more></label>\n";
    }
    return "<form class=\"long\" method=\"post\" action=\"$path\" enctype=\"multipart/form-data\">$inputs<button>$button</button></form>";
}

/** What a form sent in these fields, which have to be there and not too long. */
function sent(array $fields): array
{
    $found = [];
    foreach ($fields as $name => [$label, $most]) {
        $value = $found[$name] = trim((string)($_POST[$name] ?? ''));
        if ($value === '' && $name !== 'street2') {
            throw new Refused("$name: is missing");
        }
        if (strlen($value) > $most) {
            throw new Refused("$name: has more than $most letters");
        }
    }
    return $found;
}

function login_page(): void
{
    page('Log in', form('/login', LOGIN, 'Log in'));
}

/** Log a person in, in a new session. */
function login(): void
{
    ['username' => $username, 'password' => $password] = sent(LOGIN);
    $person = row('SELECT personid, username, salt, password_hash FROM person WHERE username = ?', $username);
    if ($person === null || !hash_equals($person['password_hash'], hash('sha256', $person['salt'] . $password))) {
        throw new Refused('Name and password do not go together', 403);
    }
    begin_session(new: true);
    session_regenerate_id(true);
    $_SESSION = ['person' => $person['personid'], 'username' => $person['username']];
    go('/');
}

function logout(): void
{
    if (me() !== null) {
        $_SESSION = [];
        session_destroy();
        setcookie(session_name(), '', 1, '/');
    }
    go('/');
}

function new_person_page(): void
{
    page('Join', form('/people', PERSON + ADDRESS + PICTURE, 'Join'));
}

/** Keep a new person, whose name nobody else may have. */
function add_person(): void
{
    ['username' => $username, 'password' => $password] = $known = sent(PERSON);
    $salt = bin2hex(random_bytes(8));
    $known = [$username, $salt, hash('sha256', $salt . $password), ...array_slice(array_values($known), 2)];
    $address = sent(ADDRESS);
    $place = located($address);
    $pictures = keep_picture('picture', 'person-' . bin2hex(random_bytes(8)));
    try {
        $id = transaction(function () use ($known, $address, $place, $pictures) {
            $id = next_id('person');
            change('INSERT INTO person VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)', $id, ...$known, ...$pictures,
                ...[keep_address(array_values($address), $place)]);
            return $id;
        });
    } catch (PDOException $error) {
        array_map(fn ($name) => unlink(kept($name)), $pictures);
        // 1062: another row has the same key.
        throw ($error->errorInfo[1] ?? 0) === 1062 ? new Refused("username: $username is taken", 409) : $error;
    }
    go("/people/$id");
}

function new_event_page(): void
{
    require_login();
    page('Add an event', form('/events', EVENT + ADDRESS + PICTURE + LITERATURE, 'Add the event'));
}

/** Keep a new event of the person who is logged in, with its address, tags and files. */
function add_event(): void
{
    require_login();
    ['takes_place' => $when, 'tags' => $words] = $known = sent(EVENT);
    $when = DateTimeImmutable::createFromFormat('!Y-m-d\TH:i', $when)
        ?: throw new Refused('takes_place: is no date and time, such as 2030-12-24T18:00');
    // Small letters, digits and hyphens.
    if (!preg_match('/^[a-z0-9-]{1,30}(\s+[a-z0-9-]{1,30})*$/', strtolower($words))) {
        throw new Refused('tags: may have letters, digits and hyphens, 30 each, with spaces between');
    }
    $tags = array_unique(preg_split('/\s+/', strtolower($words)));
    // In one order everywhere, so that two events with the same tags cannot wait for each other.
    sort($tags);
    $known = [...array_slice(array_values($known), 0, 4), $when->format('Y-m-d H:i:s')];
    $address = sent(ADDRESS);
    $read = uploaded('literature');
    $place = located($address);
    $name = 'event-' . bin2hex(random_bytes(8));
    $files = [...keep_picture('picture', $name), "$name.txt"];
    if (!move_uploaded_file($read, kept("$name.txt"))) {
        throw new RuntimeException("$name.txt cannot be written");
    }
    $id = transaction(function () use ($known, $address, $place, $files, $tags) {
        $id = next_id('socialevent');
        change('INSERT INTO socialevent VALUES (?, ?, ?, ?, ?, ?, NOW(), ?, ?, ?, ?, ?)', $id, ...$known, ...$files,
            ...[me(), keep_address(array_values($address), $place)]);
        foreach ($tags as $tag) {
            add_tag($id, $tag);
        }
        return $id;
    });
    go("/events/$id");
}

/** Give an event a tag, which may be new.  Part of a transaction. */
function add_tag(int $event, string $tag): void
{
    $found = row('SELECT socialeventtagid FROM socialeventtag WHERE tag = ? FOR UPDATE', $tag);
    if ($found === null) {
        $id = next_id('socialeventtag');
        change('INSERT INTO socialeventtag VALUES (?, ?, 1)', $id, $tag);
    } else {
        $id = $found['socialeventtagid'];
        change('UPDATE socialeventtag SET refcount = refcount + 1 WHERE socialeventtagid = ?', $id);
    }
    change('INSERT INTO socialeventtag_socialevent VALUES (?, ?)', $id, $event);
}

/** The person who is logged in attends an event; who does so already goes on doing so. */
function attend(int $event): void
{
    require_login();
    row('SELECT 1 FROM socialevent WHERE socialeventid = ?', $event) ?? throw new Refused('there is no such event', 404);
    change('INSERT IGNORE INTO person_socialevent VALUES (?, ?)', me(), $event);
    go("/events/$event");
}

function require_login(): void
{
    me() ?? throw new Refused('log in first', 403);
}
