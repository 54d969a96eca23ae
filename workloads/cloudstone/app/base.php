<?php
// What every page stands on: the database, who is logged in, and the frame around a page.
declare(strict_types=1);

// Shown to the person who asked, with its code as status; everything else that goes wrong is an error of the server's.
class Refused extends Exception
{
}

function database(): PDO
{
    static $connection = null;
    $connection ??= new PDO(getenv('DATABASE'), getenv('DATABASE_USER'), getenv('DATABASE_PASSWORD'), [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
        PDO::ATTR_EMULATE_PREPARES => false,
    ]);
    return $connection;
}

/** All rows that a query gives. */
function rows(string $sql, mixed ...$values): array
{
    $query = database()->prepare($sql);
    $query->execute($values);
    return $query->fetchAll();
}

/** The first row, or null. */
function row(string $sql, mixed ...$values): ?array
{
    return rows($sql, ...$values)[0] ?? null;
}

/** Do something to the tables. */
function change(string $sql, mixed ...$values): void
{
    database()->prepare($sql)->execute($values);
}

/** Do all of it or nothing; where two transactions locked each other out, it is begun again. */
function transaction(callable $work): mixed
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
            $again = $error instanceof PDOException && in_array($error->errorInfo[1] ?? 0, [1213, 1020], true);
            if (!$again || $attempt === 10) {
                throw $error;
            }
        }
    }
}

/** A new number; the transaction that asks keeps others from asking until it ends. */
function next_id(string $of): int
{
    change('UPDATE id_gen SET gen_value = LAST_INSERT_ID(gen_value + 1) WHERE gen_key = ?', $of);
    return (int)database()->lastInsertId();
}

/** The number of the person who is logged in, or null. */
function me(): ?int
{
    return $_SESSION['person'] ?? null;
}

/** Begin the session only for those who have one or get one: most visitors need none. */
function begin_session(bool $new = false): void
{
    if (($new || isset($_COOKIE[session_name()])) && session_status() !== PHP_SESSION_ACTIVE) {
        session_start(['use_strict_mode' => true, 'cookie_httponly' => true, 'cookie_samesite' => 'Lax']);
    }
}

/** Text as it stands in HTML. */
function h(string|int|float $text): string
{
    return htmlspecialchars((string)$text, ENT_QUOTES | ENT_SUBSTITUTE | ENT_HTML5);
}

/** Where an uploaded file is kept, by a name of ours. */
function kept(string $name): string
{
    return getenv('FILES') . "/$name";
}

/** Where PHP put a file that a form sent. */
function uploaded(string $name): string
{
    $file = $_FILES[$name] ?? null;
    if ($file === null || $file['error'] !== UPLOAD_ERR_OK) {
        throw new Refused("$name: is missing, or too large");
    }
    return $file['tmp_name'];
}

/** Keep an uploaded picture as it is, and a small one of it. */
function keep_picture(string $field, string $name): array
{
    $path = uploaded($field);
    $picture = @imagecreatefrompng($path) ?: throw new Refused("$field: is no PNG picture");
    $small = imagescale($picture, 60, 60);
    if (!move_uploaded_file($path, kept("$name.png")) || !imagepng($small, kept("$name-small.png"))) {
        throw new RuntimeException("$name cannot be written");
    }
    return ["$name.png", "$name-small.png"];
}

/** Where an address lies, by the geocoder. */
function located(array $address): array
{
    $text = implode(', ', array_filter($address, fn ($part) => $part !== ''));
    $asked = getenv('GEOCODER') . '?' . http_build_query(['address' => $text]);
    $answer = file_get_contents($asked, false, stream_context_create(['http' => ['timeout' => 30]]));
    if ($answer === false || !preg_match('/^(-?\d+\.\d{6}) (-?\d+\.\d{6})\s*$/', $answer, $found)) {
        throw new RuntimeException('the geocoder answers: ' . var_export($answer, true));
    }
    return [$found[1], $found[2]];
}

/** Keep the address that a form sent, with where it lies; its number.  Part of a transaction. */
function keep_address(array $address, array $place): int
{
    $id = next_id('address');
    change('INSERT INTO address VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)', $id, ...$address, ...$place);
    return $id;
}

/** Send the browser elsewhere after something was changed. */
function go(string $path): never
{
    header("Location: $path", true, 303);
    exit;
}

/** Print a page. */
function page(string $title, string $body, int $status = 200): void
{
    http_response_code($status);
    $who = me() === null
        ? '<a href="/login">Log in</a> <a href="/people/new">Join</a>'
        : '<a href="/people/' . me() . '">' . h($_SESSION['username']) . '</a> <a href="/events/new">Add an event</a> '
            . '<form method="post" action="/logout"><button>Log out</button></form>';
    $title = h($title);
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
        <header><a href="/"><img src="/static/logo.svg" alt="Social events"></a><nav><a href="/">Events</a> $who</nav></header>
        <img class="banner" src="/static/banner.svg" alt="">
        <main>
        <h1>$title</h1>
        $body
        </main>
        </body>
        </html>

        END;
}
