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

/** Return the process's connection to the database of this instance. */
function database(): PDO
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

/** Return all rows of a query, each as an array of column name to value. */
function fetch_rows(string $sql, mixed ...$values): array
{
    $query = database()->prepare($sql);
    $query->execute($values);
    return $query->fetchAll();
}

/** Return the first row of a query, or null. */
function fetch_row(string $sql, mixed ...$values): ?array
{
    return fetch_rows($sql, ...$values)[0] ?? null;
}

/** Run a statement that changes tables. */
function execute(string $sql, mixed ...$values): void
{
    database()->prepare($sql)->execute($values);
}

/**
 * Do all of the work or nothing, and return its result.
 * After a conflict with another transaction the work is done again, up to ten times in all.
 */
function in_transaction(callable $work): mixed
{
    for ($attempt = 1;; $attempt++) {
        database()->beginTransaction();
        try {
            $result = $work();
            database()->commit();
            return $result;
        } catch (Throwable $error) {
            if (database()->inTransaction()) {
                database()->rollBack();
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

/** Return a new id of a table; until the transaction ends, other transactions wait for theirs. */
function next_id(string $table): int
{
    $sql = 'UPDATE id_gen SET gen_value = LAST_INSERT_ID(gen_value + 1) WHERE gen_key = ?';
    execute($sql, $table);
    return (int)database()->lastInsertId();
}

/** Return the id of the person who is logged in, or null. */
function current_person(): ?int
{
    return $_SESSION['person'] ?? null;
}

/** Begin the session of a browser that has one, or a new one: most visitors need none. */
function begin_session(bool $new = false): void
{
    $is_wanted = $new || isset($_COOKIE[session_name()]);
    if ($is_wanted && session_status() !== PHP_SESSION_ACTIVE) {
        session_start([
            'use_strict_mode' => true,
            'cookie_httponly' => true,
            'cookie_samesite' => 'Lax',
        ]);
    }
}

/** Return a text as it is written in HTML. */
function html(string|int|float $text): string
{
    return htmlspecialchars((string)$text, ENT_QUOTES | ENT_SUBSTITUTE | ENT_HTML5);
}

/** Return the path of a stored file; names of stored files are made by the site. */
function file_path(string $name): string
{
    return getenv('FILES') . "/$name";
}

/** Return the path at which PHP keeps the file of a form's field. */
function uploaded_path(string $field): string
{
    $file = $_FILES[$field] ?? null;
    if ($file === null || $file['error'] !== UPLOAD_ERR_OK) {
        throw new Refused("$field: is missing, or too large");
    }
    return $file['tmp_name'];
}

/** Store an uploaded picture and a small version of it; return the names of both files. */
function store_picture(string $field, string $name): array
{
    $path = uploaded_path($field);
    $picture = @imagecreatefrompng($path) ?: throw new Refused("$field: is no PNG picture");
    $small = imagescale($picture, 60, 60);
    $is_stored = move_uploaded_file($path, file_path("$name.png"))
        && imagepng($small, file_path("$name-small.png"));
    if (!$is_stored) {
        throw new RuntimeException("$name cannot be written");
    }
    return ["$name.png", "$name-small.png"];
}

/** Return latitude and longitude of an address, as the geocoder gives them. */
function locate(array $address): array
{
    $text = implode(', ', array_filter($address, fn ($part) => $part !== ''));
    $url = getenv('GEOCODER') . '?' . http_build_query(['address' => $text]);
    $answer = file_get_contents($url, false, stream_context_create(['http' => ['timeout' => 30]]));
    if ($answer === false || !preg_match('/^(-?\d+\.\d{6}) (-?\d+\.\d{6})\s*$/', $answer, $match)) {
        throw new RuntimeException('the geocoder answers: ' . var_export($answer, true));
    }
    return [$match[1], $match[2]];
}

/** Add an address with its coordinates, inside a transaction; return its id. */
function add_address(array $address, array $coordinates): int
{
    $id = next_id('address');
    $values = [$id, ...$address, ...$coordinates];
    execute('INSERT INTO address VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)', ...$values);
    return $id;
}

/** Send the browser to another page, as after every change. */
function redirect(string $path): never
{
    header("Location: $path", true, 303);
    exit;
}

/** Print a page.  $body is HTML, $title plain text. */
function print_page(string $title, string $body, int $status = 200): void
{
    http_response_code($status);
    $navigation = current_person() === null
        ? '<a href="/login">Log in</a> <a href="/people/new">Join</a>'
        : '<a href="/people/' . current_person() . '">' . html($_SESSION['username']) . '</a> '
            . '<a href="/events/new">Add an event</a> '
            . '<form method="post" action="/logout"><button>Log out</button></form>';
    $title = html($title);
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
