<?php
// What the application changes: forms, and what becomes of them.
declare(strict_types=1);

/** The field of a form. */
function input(string $name, string $label, string $more = ''): string
{
    return "<label>$label <input name=\"$name\" $more></label>\n";
}

const ADDRESS_INPUTS = ['street1' => 'Street', 'street2' => 'Street, second line', 'city' => 'City',
    'state' => 'State', 'zip' => 'ZIP code', 'country' => 'Country'];

function address_inputs(): string
{
    $inputs = '';
    foreach (ADDRESS_INPUTS as $name => $label) {
        $inputs .= input($name, $label, $name === 'street2' ? '' : 'required');
    }
    return $inputs;
}

function login_page(string $wrong = ''): void
{
    $said = $wrong === '' ? '' : '<p class="wrong">' . h($wrong) . '</p>';
    page('Log in', $said . '<form class="long" method="post" action="/login">' . input('username', 'Name', 'required')
        . input('password', 'Password', 'type="password" required') . '<button>Log in</button></form>', $said === '' ? 200 : 403);
}

/** Log a person in, in a new session. */
function login(): void
{
    $person = row('SELECT personid, username, salt, password_hash FROM person WHERE username = ?', field('username', 30));
    $password = field('password', 100);
    if ($person === null || !hash_equals($person['password_hash'], hash('sha256', $person['salt'] . $password))) {
        login_page('Name and password do not go together');
        return;
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
    page('Join', '<form class="long" method="post" action="/people" enctype="multipart/form-data">'
        . input('username', 'Name', 'required') . input('password', 'Password', 'type="password" required')
        . input('firstname', 'First name', 'required') . input('lastname', 'Last name', 'required')
        . input('email', 'E-mail', 'type="email" required') . input('telephone', 'Telephone', 'required')
        . input('timezone', 'Time zone', 'required') . '<label>About you <textarea name="summary" required></textarea></label>'
        . address_inputs() . input('picture', 'Picture', 'type="file" accept="image/png" required')
        . '<button>Join</button></form>');
}

/** Keep a new person, whose name nobody else may have. */
function add_person(): void
{
    $username = field('username', 30);
    $salt = bin2hex(random_bytes(8));
    $known = [$username, $salt, hash('sha256', $salt . field('password', 100)), field('firstname', 30),
        field('lastname', 30), field('email', 80), field('telephone', 20), field('summary', 1000), field('timezone', 40)];
    $address = address_fields();
    uploaded_picture('picture');
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
    page('Add an event', '<form class="long" method="post" action="/events" enctype="multipart/form-data">'
        . input('title', 'Title', 'required') . input('summary', 'In short', 'required')
        . '<label>Description <textarea name="description" required></textarea></label>'
        . input('telephone', 'Telephone', 'required') . input('takes_place', 'When', 'type="datetime-local" required')
        . input('tags', 'Tags, with spaces between', 'required') . address_inputs()
        . input('picture', 'Picture', 'type="file" accept="image/png" required')
        . input('literature', 'Something to read', 'type="file" accept="text/plain" required')
        . '<button>Add the event</button></form>');
}

/** Keep a new event of the person who is logged in, with its address, tags and files. */
function add_event(): void
{
    require_login();
    $when = DateTimeImmutable::createFromFormat('!Y-m-d\TH:i', field('takes_place', 16))
        ?: throw new Refused('takes_place: is no date and time, such as 2030-12-24T18:00');
    $tags = array_unique(preg_split('/\s+/', tag_words(field('tags', 200))));
    // In one order everywhere, so that two events with the same tags cannot wait for each other.
    sort($tags);
    $known = [field('title', 100), field('summary', 200), field('description', 2000), field('telephone', 20),
        $when->format('Y-m-d H:i:s')];
    $address = address_fields();
    uploaded_picture('picture');
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

/** Tags as they are kept: small letters, digits and hyphens. */
function tag_words(string $tags): string
{
    $tags = strtolower($tags);
    return preg_match('/^[a-z0-9-]{1,30}(\s+[a-z0-9-]{1,30})*$/', $tags)
        ? $tags : throw new Refused('tags: may have letters, digits and hyphens, 30 each, with spaces between');
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
