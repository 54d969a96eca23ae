<?php
// The foundation of every page: the database, the session, uploaded files, and the frame of a page.
declare(strict_types=1);

/**
 * A request that the site refuses: the user sees the message, with the code as status (400 if 0).
 * Any other exception is an error of the server, with the status 500.
 */
class Refused extends Exception
{
}

/**
 * Return the connection to this instance's database, which is opened once for each request.
 * site.sh exports the variables DATABASE….  Every error of the database is a PDOException.
 */
function open_database(): PDO
{
    static $connection = null;
    $options = [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
        PDO::ATTR_EMULATE_PREPARES => false,
    ];
    $account = [getenv('DATABASE_USER'), getenv('DATABASE_PASSWORD')];
    $connection ??= new PDO(getenv('DATABASE'), ...$account, options: $options);
    return $connection;
}

/** Return all rows of a query, each as an array of values by columns.  $values: of placeholders. */
function fetch_rows(string $sql, mixed ...$values): array
{
    $query = open_database()->prepare($sql);
    $query->execute($values);
    return $query->fetchAll();
}

/** Return the first row of a query, as fetch_rows() does, or null if there is none. */
function fetch_row(string $sql, mixed ...$values): ?array
{
    return fetch_rows($sql, ...$values)[0] ?? null;
}

/** Run a statement that changes tables, with the values of its placeholders. */
function execute_statement(string $sql, mixed ...$values): void
{
    open_database()->prepare($sql)->execute($values);
}

/**
 * Run work in a transaction, which does all of it or nothing, and return its result.
 * After a conflict with another transaction the work is done again, up to ten times in all: it must
 * change nothing but the database.
 */
function run_transaction(callable $work): mixed
{
    for ($attempt = 1;; $attempt++) {
        open_database()->beginTransaction();
        try {
            $result = $work();
            open_database()->commit();
            return $result;
        } catch (Throwable $error) {
            if (open_database()->inTransaction()) {
                open_database()->rollBack();
            }
            // 1213: deadlock; 1020: the row changed since the transaction's first read.
            $is_conflict = $error instanceof PDOException
                && in_array($error->errorInfo[1] ?? 0, [1213, 1020], true);
            if (!$is_conflict || $attempt === 10) {
                throw $error;
            }
        }
    }
}

/**
 * Return a new id for a row of a table, inside a transaction.
 * Other transactions wait for ids of this table until this one ends, so that no id is lost:
 * show_books() counts an id_gen that differs from the table's last id as broken.
 */
function reserve_id(string $table): int
{
    $sql = 'UPDATE id_gen SET gen_value = LAST_INSERT_ID(gen_value + 1) WHERE gen_key = ?';
    execute_statement($sql, $table);
    return (int)open_database()->lastInsertId();
}

/** Return the id of the person who is logged in, which log_in() keeps in the session, or null. */
function get_person_id(): ?int
{
    return $_SESSION['person'] ?? null;
}

/**
 * Begin the session of the browser, if it has one; most visitors need none.
 * $is_new: begin a new session for a browser without one.
 */
function begin_session(bool $is_new = false): void
{
    $is_wanted = $is_new || isset($_COOKIE[session_name()]);
    if ($is_wanted && session_status() !== PHP_SESSION_ACTIVE) {
        session_start([
            'use_strict_mode' => true,
            'cookie_httponly' => true,
            'cookie_samesite' => 'Lax',
        ]);
    }
}

/** Return a text with its special characters escaped for HTML. */
function escape_html(string|int|float $text): string
{
    return htmlspecialchars((string)$text, ENT_QUOTES | ENT_SUBSTITUTE | ENT_HTML5);
}

/** Return the path of a stored file, whose name the site has made; the name is not checked. */
function find_file(string $name): string
{
    return getenv('FILES') . "/$name";
}

/** Return the path of the file that was uploaded in a field.  Throws Refused if it is missing. */
function find_upload(string $field): string
{
    $file = $_FILES[$field] ?? null;
    if ($file === null || $file['error'] !== UPLOAD_ERR_OK) {
        throw new Refused("$field: is missing, or too large");
    }
    return $file['tmp_name'];
}

/**
 * Store an uploaded picture, and a small version of it; return the names of both files.
 * $field: of the form.  $name: of the files, without an ending; the web server serves /files/.
 * Throws Refused if the upload is no PNG picture.
 */
function store_picture(string $field, string $name): array
{
    $path = find_upload($field);
    $picture = @imagecreatefrompng($path) ?: throw new Refused("$field: is no PNG picture");
    $small = imagescale($picture, 60, 60);
    $is_stored = move_uploaded_file($path, find_file("$name.png"))
        && imagepng($small, find_file("$name-small.png"));
    if (!$is_stored) {
        throw new RuntimeException("$name cannot be written");
    }
    return ["$name.png", "$name-small.png"];
}

/**
 * Return latitude and longitude of an address, in degrees, as texts, which the geocoder gives.
 * $address: texts; empty ones are left out.  After a wrong answer the page has the status 500.
 */
function locate_address(array $address): array
{
    $text = implode(', ', array_filter($address, fn ($line) => $line !== ''));
    $url = getenv('GEOCODER') . '?' . http_build_query(['address' => $text]);
    $answer = file_get_contents($url, false, stream_context_create(['http' => ['timeout' => 30]]));
    if ($answer === false || !preg_match('/^(-?\d+\.\d{6}) (-?\d+\.\d{6})\s*$/', $answer, $match)) {
        throw new RuntimeException('the geocoder answers: ' . var_export($answer, true));
    }
    return [$match[1], $match[2]];
}

/**
 * Add an address with its coordinates, inside a transaction; return its id.
 * $address: values in the order of the table's columns.  $coordinates: as of locate_address().
 */
function add_address(array $address, array $coordinates): int
{
    $id = reserve_id('address');
    $values = [$id, ...$address, ...$coordinates];
    execute_statement('INSERT INTO address VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)', ...$values);
    return $id;
}

/** Send the browser to another page, as after every change, and end the request. */
function redirect(string $path): never
{
    header("Location: $path", true, 303);
    exit;
}

/**
 * Print a page with a status.  $title: plain text.  $body: HTML.
 * visitor.py expects the heading with the title, </html>, and the name of the person in a link; it
 * fetches the files that the page names.
 */
function print_page(string $title, string $body, int $status = 200): void
{
    http_response_code($status);
    $navigation = '<a href="/login">Log in</a> <a href="/people/new">Join</a>';
    if (get_person_id() !== null) {
        $name = escape_html($_SESSION['username']);
        $navigation = '<a href="/people/' . get_person_id() . "\">$name</a> "
            . '<a href="/events/new">Add an event</a> '
            . '<form method="post" action="/logout"><button>Log out</button></form>';
    }
    $title = escape_html($title);
    echo <<<END
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>$title – Social events</title>
        <link rel="stylesheet" href="/static/style.css">
        <link rel="icon" href="/static/logo.svg">
        <script src="/static/site.js" defer></script>
        </head>
        <body>
        <header><a href="/"><img src="/static/logo.svg" alt="Social events"></a>
        <nav><a href="/">Events</a> $navigation</nav></header>
        <img class="banner" src="/static/banner.svg" alt="">
        <main>
        <h1>$title</h1>
        $body
        </main>
        </body>
        </html>

        END;
}
