<?php
// What the pages share: the database, who is logged in, and the frame of a page.
declare(strict_types=1);

/** The rows of a statement.  An error ends the page with 500, and stands in the server's log. */
function ask(string $sql, array $values = []): array
{
    // A process of the web server keeps its connection from page to page.
    $database = pg_pconnect($_SERVER['SHOP_DATABASE']) ?: throw new RuntimeException('no database');
    $found = pg_query_params($database, $sql, $values) ?: throw new RuntimeException(pg_last_error($database));
    return pg_fetch_all($found);
}

/** A list of whole numbers as PostgreSQL reads an array. */
function numbers(array $values): string
{
    return '{' . implode(',', $values) . '}';
}

/** Text as it may stand in HTML. */
function text(mixed $value): string
{
    return htmlspecialchars((string) $value, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
}

/** A field of a form; the empty text where it was not sent. */
function field(string $name): string
{
    $value = $_POST[$name] ?? $_GET[$name] ?? '';
    return is_string($value) && preg_match('//u', $value) ? trim(str_replace("\0", '', $value)) : '';
}

function seal(int $customer): string
{
    return hash_hmac('sha256', (string) $customer, $_SERVER['SHOP_KEY']);
}

/** Lets the browser remember who logged in; nobody can make such a mark but the shop. */
function remember(int $customer): void
{
    setcookie('customer', $customer . '.' . seal($customer), ['path' => '/', 'httponly' => true, 'samesite' => 'Lax']);
}

/** The customer who is logged in; 0 for none. */
function customer(): int
{
    $mark = $_COOKIE['customer'] ?? '';
    [$number, $seal] = array_pad(explode('.', is_string($mark) ? $mark : '', 2), 2, '');
    return ctype_digit($number) && hash_equals(seal((int) $number), $seal) ? (int) $number : 0;
}

/** The search form of every page for customers. */
function search_form(): string
{
    $options = '';
    foreach (ask('SELECT id, name FROM categories ORDER BY id') as $one) {
        $options .= '<option value="' . text($one['id']) . '">' . text($one['name']) . '</option>';
    }
    return <<<HTML
    <form class="search" action="browse.php">
    <input type="hidden" name="by" value="category">
    <label>Specials of <select name="words">$options</select></label> <button>Show</button>
    </form>
    <form class="search" action="browse.php">
    <label>Find <input name="words" required maxlength="100"></label>
    <label>in <select name="by"><option value="title">titles</option><option value="actor">actors</option></select></label>
    <button>Find</button>
    </form>
    HTML;
}

/**
 * Sends a page.
 *
 * $name: what it is, for programs that read it.  $told: more for them, name to value.
 */
function page(string $name, string $title, string $body, array $told = [], int $status = 200): void
{
    http_response_code($status);
    header('Content-Type: text/html; charset=utf-8');
    header('Cache-Control: no-store');
    $marks = '';
    foreach (['page' => $name, ...$told] as $key => $value) {
        $marks .= " data-$key=\"" . text($value) . '"';
    }
    $title = text($title);
    echo <<<HTML
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>$title – DVD shop</title>
    </head>
    <body>
    <header>DVD shop</header>
    <main$marks>
    <h1>$title</h1>
    $body
    </main>
    </body>
    </html>

    HTML;
}
