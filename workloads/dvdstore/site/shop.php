<?php
// Shared by all pages: the database, the customer who is logged in, and the frame of a page.
declare(strict_types=1);

/**
 * Run an SQL statement, and return its rows, each as an array of texts by their columns.
 * $values: of $1, $2 and so on.  An error ends the page with the status 500.
 * apache.conf sets SHOP_DATABASE.
 */
function query_database(string $sql, array $values = []): array
{
    // A process of the web server keeps its connection from page to page.
    $database = pg_pconnect($_SERVER['SHOP_DATABASE']) ?: throw new RuntimeException('no database');
    $result = pg_query_params($database, $sql, $values)
        ?: throw new RuntimeException(pg_last_error($database));
    return pg_fetch_all($result);
}

/** Return whole numbers as PostgreSQL reads an array. */
function format_array(array $numbers): string
{
    return '{' . implode(',', $numbers) . '}';
}

/** Return a value as text with its special characters escaped for HTML. */
function escape_html(mixed $value): string
{
    return htmlspecialchars((string) $value, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
}

/** Return a row of a table with its values, of the same keys, escaped for HTML. */
function escape_row(array $row): array
{
    return array_map(escape_html(...), $row);
}

/** Return a field of the request, trimmed; the empty text if it was not sent, or is not UTF-8. */
function read_field(string $name): string
{
    $value = $_POST[$name] ?? $_GET[$name] ?? '';
    $is_text = is_string($value) && preg_match('//u', $value);
    return $is_text ? trim(str_replace("\0", '', $value)) : '';
}

/** Return the signature of a customer's number, which only the holder of SHOP_KEY can make. */
function sign_customer(int $customer): string
{
    return hash_hmac('sha256', (string) $customer, $_SERVER['SHOP_KEY']);
}

/** Set the cookie that names the customer who is logged in; get_customer() reads it. */
function remember_customer(int $customer): void
{
    $options = ['path' => '/', 'httponly' => true, 'samesite' => 'Lax'];
    setcookie('customer', $customer . '.' . sign_customer($customer), $options);
}

/** Return the number of the customer whom the signed cookie names; 0 if nobody is logged in. */
function get_customer(): int
{
    $cookie = $_COOKIE['customer'] ?? '';
    // NUMBER.SIGNATURE; a cookie that somebody else made may be anything.
    $words = explode('.', is_string($cookie) ? $cookie : '', 2);
    [$number, $signature] = array_pad($words, 2, '');
    $is_signed = ctype_digit($number) && hash_equals(sign_customer((int) $number), $signature);
    return $is_signed ? (int) $number : 0;
}

/** Return the HTML of the search forms, which are on every page for customers. */
function render_search_form(): string
{
    $options = '';
    foreach (query_database('SELECT id, name FROM categories ORDER BY id') as $row) {
        $category = escape_row($row);
        $options .= "<option value=\"$category[id]\">$category[name]</option>";
    }
    return <<<HTML
    <form class="search" action="browse.php">
    <input type="hidden" name="by" value="category">
    <label>Specials of <select name="words">$options</select></label> <button>Show</button>
    </form>
    <form class="search" action="browse.php">
    <label>Find <input name="words" required maxlength="100"></label>
    <label>in <select name="by"><option value="title">titles</option>
    <option value="actor">actors</option></select></label>
    <button>Find</button>
    </form>
    HTML;
}

/**
 * Print a page.
 *
 * $name: the page's name for programs.  $title: plain text.  $body: HTML.
 * $results: more values for programs, by names of small letters; they become attributes of `main`.
 * fetch_page of visitor.py reads the attributes, and expects that the page ends with </html>.
 */
function print_page(
    string $name,
    string $title,
    string $body,
    array $results = [],
    int $status = 200
): void {
    http_response_code($status);
    header('Content-Type: text/html; charset=utf-8');
    header('Cache-Control: no-store');
    $attributes = '';
    foreach (['page' => $name, ...$results] as $key => $value) {
        $attributes .= " data-$key=\"" . escape_html($value) . '"';
    }
    $title = escape_html($title);
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
    <main$attributes>
    <h1>$title</h1>
    $body
    </main>
    </body>
    </html>

    HTML;
}

/** Print a page that refuses the request, and end it.  $title: plain text.  $body: HTML. */
function refuse_request(string $title, int $status, string $body = ''): never
{
    print_page('refused', $title, $body, [], $status);
    exit;
}
