<?php
// The part of the site that changes the database: its forms, and the answers to them.
declare(strict_types=1);

// The fields of each form, in the order of the table's columns: label, largest number of bytes (0:
// a file), and attributes in HTML, if any.
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

/**
 * Return the HTML of a form.  $path: to which it is sent.  $button: the label of its button.
 * $fields: as the constants above: name → label, largest number of bytes, and attributes, if any.
 */
function render_form(string $path, array $fields, string $button): string
{
    $inputs = '';
    foreach ($fields as $name => $field) {
        // A field may lack attributes, which come last.
        [$label, , $attributes] = [...$field, ''];
        $attributes .= $name === 'street2' ? '' : ' required';
        $inputs .= "<label>$label <input name=\"$name\" $attributes></label>\n";
    }
    return "<form class=\"long\" method=\"post\" action=\"$path\" enctype=\"multipart/form-data\">"
        . "$inputs<button>$button</button></form>";
}

/**
 * Return the values of the fields that were sent, by their names, in the order of $fields.
 * $fields: as of render_form(), without files.  Only street2 may be empty.
 * Throws Refused if one is missing or too long.
 */
function read_fields(array $fields): array
{
    $values = [];
    foreach ($fields as $name => [, $max_bytes]) {
        $value = trim((string)($_POST[$name] ?? ''));
        if ($value === '' && $name !== 'street2') {
            throw new Refused("$name: is missing");
        }
        if (strlen($value) > $max_bytes) {
            throw new Refused("$name: has more than $max_bytes letters");
        }
        $values[$name] = $value;
    }
    return $values;
}

/** Show the form for logging in; visitor.py expects the heading. */
function show_login(): void
{
    print_page('Log in', render_form('/login', LOGIN, 'Log in'));
}

/**
 * Log a person in, in a new session, and redirect to the home page.
 * Throws Refused (403) for a wrong name or password.  data_set.py hashes passwords in the same way.
 */
function log_in(): void
{
    ['username' => $username, 'password' => $password] = read_fields(LOGIN);
    $person = fetch_row('SELECT personid, username, salt, password_hash FROM person
        WHERE username = ?', $username);
    $digest = hash('sha256', ($person['salt'] ?? '') . $password);
    if ($person === null || !hash_equals($person['password_hash'], $digest)) {
        throw new Refused('Name and password do not go together', 403);
    }
    begin_session(is_new: true);
    session_regenerate_id(true);
    $_SESSION = ['person' => $person['personid'], 'username' => $person['username']];
    redirect('/');
}

/** End the session of the person who is logged in, if any, and redirect to the home page. */
function log_out(): void
{
    if (get_person_id() !== null) {
        $_SESSION = [];
        session_destroy();
        setcookie(session_name(), '', 1, '/');
    }
    redirect('/');
}

/** Show the form for joining; visitor.py expects the heading. */
function show_person_form(): void
{
    print_page('Join', render_form('/people', PERSON + ADDRESS + PICTURE, 'Join'));
}

/**
 * Add a person with an address and a picture, and redirect to the person's page.
 * Throws Refused (409) if another person has the name; the stored picture is removed then.
 */
function add_person(): void
{
    $fields = read_fields(PERSON);
    ['username' => $username, 'password' => $password] = $fields;
    unset($fields['username'], $fields['password']);
    $salt = bin2hex(random_bytes(8));
    $secret = hash('sha256', $salt . $password);
    $columns = [$username, $salt, $secret, ...array_values($fields)];
    $address = read_fields(ADDRESS);
    $coordinates = locate_address($address);
    $pictures = store_picture('picture', 'person-' . bin2hex(random_bytes(8)));
    try {
        $id = run_transaction(function () use ($columns, $address, $coordinates, $pictures) {
            $id = reserve_id('person');
            $address_id = add_address(array_values($address), $coordinates);
            $values = [$id, ...$columns, ...$pictures, $address_id];
            execute_statement(
                'INSERT INTO person VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
                ...$values
            );
            return $id;
        });
    } catch (PDOException $error) {
        array_map(fn ($name) => unlink(find_file($name)), $pictures);
        // 1062: another row has the same key.
        $is_taken = ($error->errorInfo[1] ?? 0) === 1062;
        throw $is_taken ? new Refused("username: $username is taken", 409) : $error;
    }
    redirect("/people/$id");
}

/** Show the form for a new event, whose heading visitor.py expects.  Throws Refused (403). */
function show_event_form(): void
{
    require_login();
    $fields = EVENT + ADDRESS + PICTURE + LITERATURE;
    print_page('Add an event', render_form('/events', $fields, 'Add the event'));
}

/**
 * Return the tags of a text with spaces between them, each once, in small letters.
 * They are sorted, so that two events with the same tags cannot wait for each other.
 * Throws Refused if one has other characters or is too long.
 */
function split_tags(string $text): array
{
    $text = strtolower($text);
    if (!preg_match('/^[a-z0-9-]{1,30}(\s+[a-z0-9-]{1,30})*$/', $text)) {
        throw new Refused(
            'tags: may have letters, digits and hyphens, 30 each, with spaces between'
        );
    }
    $tags = array_unique(preg_split('/\s+/', $text));
    sort($tags);
    return $tags;
}

/**
 * Add an event of the person who is logged in, with its address, tags and files; redirect to it.
 * Throws Refused if nobody is logged in (403), or if a field is wrong.
 */
function add_event(): void
{
    require_login();
    $fields = read_fields(EVENT);
    $takes_place = DateTimeImmutable::createFromFormat('!Y-m-d\TH:i', $fields['takes_place'])
        ?: throw new Refused('takes_place: is no date and time, such as 2030-12-24T18:00');
    $tags = split_tags($fields['tags']);
    unset($fields['takes_place'], $fields['tags']);
    $columns = [...array_values($fields), $takes_place->format('Y-m-d H:i:s')];
    $address = read_fields(ADDRESS);
    $literature = find_upload('literature');
    $coordinates = locate_address($address);
    $name = 'event-' . bin2hex(random_bytes(8));
    $files = [...store_picture('picture', $name), "$name.txt"];
    if (!move_uploaded_file($literature, find_file("$name.txt"))) {
        throw new RuntimeException("$name.txt cannot be written");
    }
    $id = run_transaction(function () use ($columns, $address, $coordinates, $files, $tags) {
        $id = reserve_id('socialevent');
        $address_id = add_address(array_values($address), $coordinates);
        $values = [$id, ...$columns, ...$files, get_person_id(), $address_id];
        execute_statement(
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

/**
 * Give an event a tag, which may be new, inside a transaction; count the tag's events.
 * Callers give the tags of an event in sorted order, so that transactions do not wait in a circle.
 */
function add_tag(int $event, string $tag): void
{
    $sql = 'SELECT socialeventtagid FROM socialeventtag WHERE tag = ? FOR UPDATE';
    $row = fetch_row($sql, $tag);
    if ($row === null) {
        $id = reserve_id('socialeventtag');
        execute_statement('INSERT INTO socialeventtag VALUES (?, ?, 1)', $id, $tag);
    } else {
        $id = $row['socialeventtagid'];
        $sql = 'UPDATE socialeventtag SET refcount = refcount + 1 WHERE socialeventtagid = ?';
        execute_statement($sql, $id);
    }
    execute_statement('INSERT INTO socialeventtag_socialevent VALUES (?, ?)', $id, $event);
}

/**
 * Let the person who is logged in attend an event, once, and redirect to the event.
 * Throws Refused if nobody is logged in (403), or for an unknown event (404).
 */
function attend_event(int $event): void
{
    require_login();
    fetch_row('SELECT 1 FROM socialevent WHERE socialeventid = ?', $event)
        ?? throw new Refused('there is no such event', 404);
    $sql = 'INSERT IGNORE INTO person_socialevent VALUES (?, ?)';
    execute_statement($sql, get_person_id(), $event);
    redirect("/events/$event");
}

/** Throw Refused (403) unless a person is logged in. */
function require_login(): void
{
    get_person_id() ?? throw new Refused('log in first', 403);
}
