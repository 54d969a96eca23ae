<?php
// The part of the site that changes the database: its forms, and the answers to them.
declare(strict_types=1);

// The fields of each form, in the order of the table's columns: label, most bytes, attributes.
const ADDRESS = [
    'street1' => ['Street', 80],
    'street2' => ['Street, second line', 80],
    'city' => ['City', 40],
    'state' => ['State', 20],
    'zip' => ['ZIP code', 10],
    'country' => ['Country', 40],
];
const LOGIN = ['username' => ['Name', 30], 'password' => ['Password', 100, 'type="password"']];
const PERSON = LOGIN + [
    'firstname' => ['First name', 30],
    'lastname' => ['Last name', 30],
    'email' => ['E-mail', 80, 'type="email"'],
    'telephone' => ['Telephone', 20],
    'summary' => ['About you', 1000],
    'timezone' => ['Time zone', 40],
];
const EVENT = [
    'title' => ['Title', 100],
    'summary' => ['In short', 200],
    'description' => ['Description', 2000],
    'telephone' => ['Telephone', 20],
    'takes_place' => ['When', 16, 'type="datetime-local"'],
    'tags' => ['Tags, with spaces between', 200],
];
const PICTURE = ['picture' => ['Picture', 0, 'type="file" accept="image/png"']];
const LITERATURE = ['literature' => ['Something to read', 0, 'type="file" accept="text/plain"']];

/** Return the HTML of a form whose fields are sent to a path. */
function make_form(string $path, array $fields, string $button): string
{
    $inputs = '';
    foreach ($fields as $name => $field) {
        $attributes = ($field[2] ?? '') . ($name === 'street2' ? '' : ' required');
        $inputs .= "<label>$field[0] <input name=\"$name\" $attributes></label>\n";
    }
    return "<form class=\"long\" method=\"post\" action=\"$path\" enctype=\"multipart/form-data\">"
        . "$inputs<button>$button</button></form>";
}

/** Return the fields of a request by name.  Throws Refused if one is missing or too long. */
function read_fields(array $fields): array
{
    $values = [];
    foreach ($fields as $name => [$label, $most]) {
        $value = $values[$name] = trim((string)($_POST[$name] ?? ''));
        if ($value === '' && $name !== 'street2') {
            throw new Refused("$name: is missing");
        }
        if (strlen($value) > $most) {
            throw new Refused("$name: has more than $most letters");
        }
    }
    return $values;
}

/** Show the form for logging in. */
function show_login(): void
{
    print_page('Log in', make_form('/login', LOGIN, 'Log in'));
}

/** Log a person in, and begin a new session. */
function log_in(): void
{
    ['username' => $username, 'password' => $password] = read_fields(LOGIN);
    $person = fetch_row('SELECT personid, username, salt, password_hash FROM person
        WHERE username = ?', $username);
    $digest = hash('sha256', ($person['salt'] ?? '') . $password);
    if ($person === null || !hash_equals($person['password_hash'], $digest)) {
        throw new Refused('Name and password do not go together', 403);
    }
    begin_session(new: true);
    session_regenerate_id(true);
    $_SESSION = ['person' => $person['personid'], 'username' => $person['username']];
    redirect('/');
}

/** End the session of the person who is logged in, if any. */
function log_out(): void
{
    if (current_person() !== null) {
        $_SESSION = [];
        session_destroy();
        setcookie(session_name(), '', 1, '/');
    }
    redirect('/');
}

/** Show the form for joining. */
function show_person_form(): void
{
    print_page('Join', make_form('/people', PERSON + ADDRESS + PICTURE, 'Join'));
}

/** Add a person.  Throws Refused (409) if another person has the name. */
function add_person(): void
{
    ['username' => $username, 'password' => $password] = $fields = read_fields(PERSON);
    $salt = bin2hex(random_bytes(8));
    $rest = array_slice(array_values($fields), 2);
    $columns = [$username, $salt, hash('sha256', $salt . $password), ...$rest];
    $address = read_fields(ADDRESS);
    $coordinates = locate($address);
    $pictures = store_picture('picture', 'person-' . bin2hex(random_bytes(8)));
    try {
        $id = in_transaction(function () use ($columns, $address, $coordinates, $pictures) {
            $id = next_id('person');
            $place = add_address(array_values($address), $coordinates);
            $values = [$id, ...$columns, ...$pictures, $place];
            execute(
                'INSERT INTO person VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
                ...$values
            );
            return $id;
        });
    } catch (PDOException $error) {
        array_map(fn ($name) => unlink(file_path($name)), $pictures);
        // 1062: another row has the same key.
        $is_taken = ($error->errorInfo[1] ?? 0) === 1062;
        throw $is_taken ? new Refused("username: $username is taken", 409) : $error;
    }
    redirect("/people/$id");
}

/** Show the form for a new event. */
function show_event_form(): void
{
    require_login();
    $fields = EVENT + ADDRESS + PICTURE + LITERATURE;
    print_page('Add an event', make_form('/events', $fields, 'Add the event'));
}

/** Add an event of the person who is logged in, with its address, tags and files. */
function add_event(): void
{
    require_login();
    ['takes_place' => $when, 'tags' => $words] = $fields = read_fields(EVENT);
    $when = DateTimeImmutable::createFromFormat('!Y-m-d\TH:i', $when)
        ?: throw new Refused('takes_place: is no date and time, such as 2030-12-24T18:00');
    if (!preg_match('/^[a-z0-9-]{1,30}(\s+[a-z0-9-]{1,30})*$/', strtolower($words))) {
        throw new Refused(
            'tags: may have letters, digits and hyphens, 30 each, with spaces between'
        );
    }
    $tags = array_unique(preg_split('/\s+/', strtolower($words)));
    // Always in the same order: two events with the same tags cannot wait for each other.
    sort($tags);
    $columns = [...array_slice(array_values($fields), 0, 4), $when->format('Y-m-d H:i:s')];
    $address = read_fields(ADDRESS);
    $literature = uploaded_path('literature');
    $coordinates = locate($address);
    $name = 'event-' . bin2hex(random_bytes(8));
    $files = [...store_picture('picture', $name), "$name.txt"];
    if (!move_uploaded_file($literature, file_path("$name.txt"))) {
        throw new RuntimeException("$name.txt cannot be written");
    }
    $id = in_transaction(function () use ($columns, $address, $coordinates, $files, $tags) {
        $id = next_id('socialevent');
        $place = add_address(array_values($address), $coordinates);
        $values = [$id, ...$columns, ...$files, current_person(), $place];
        execute(
            'INSERT INTO socialevent VALUES (?, ?, ?, ?, ?, ?, NOW(), ?, ?, ?, ?, ?)',
            ...$values
        );
        foreach ($tags as $tag) {
            add_tag($id, $tag);
        }
        return $id;
    });
    redirect("/events/$id");
}

/** Give an event a tag, which may be new, inside a transaction. */
function add_tag(int $event, string $tag): void
{
    $sql = 'SELECT socialeventtagid FROM socialeventtag WHERE tag = ? FOR UPDATE';
    $row = fetch_row($sql, $tag);
    if ($row === null) {
        $id = next_id('socialeventtag');
        execute('INSERT INTO socialeventtag VALUES (?, ?, 1)', $id, $tag);
    } else {
        $id = $row['socialeventtagid'];
        $sql = 'UPDATE socialeventtag SET refcount = refcount + 1 WHERE socialeventtagid = ?';
        execute($sql, $id);
    }
    execute('INSERT INTO socialeventtag_socialevent VALUES (?, ?)', $id, $event);
}

/** Let the person who is logged in attend an event, if that person does not already. */
function attend_event(int $event): void
{
    require_login();
    fetch_row('SELECT 1 FROM socialevent WHERE socialeventid = ?', $event)
        ?? throw new Refused('there is no such event', 404);
    execute('INSERT IGNORE INTO person_socialevent VALUES (?, ?)', current_person(), $event);
    redirect("/events/$event");
}

/** Throw Refused (403) unless a person is logged in. */
function require_login(): void
{
    current_person() ?? throw new Refused('log in first', 403);
}
