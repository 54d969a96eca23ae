<?php
// Makes a new customer.
declare(strict_types=1);
require __DIR__ . '/shop.php';

// Field of the form to its label; the order is that of new_customer().
const FIELDS = [
    'first_name' => 'First name', 'last_name' => 'Last name', 'street' => 'Street', 'city' => 'City',
    'country' => 'Country', 'email' => 'E-mail', 'phone' => 'Phone', 'card' => 'Credit card',
    'username' => 'Name to log in with', 'password' => 'Password', 'age' => 'Age', 'income' => 'Income', 'gender' => 'Gender',
];
const TYPES = ['email' => 'email', 'password' => 'password', 'age' => 'number', 'income' => 'number'];

/** The form, with what was filled in before, and a sentence about what is wrong with that. */
function form(string $wrong, int $status): void
{
    $inputs = '';
    foreach (FIELDS as $name => $label) {
        $type = TYPES[$name] ?? 'text';
        $value = $type === 'password' ? '' : text(field($name));
        $inputs .= "<label>$label <input name=\"$name\" type=\"$type\" value=\"$value\" required maxlength=\"50\"></label>\n";
    }
    $said = $wrong === '' ? '' : '<p role="alert">' . text($wrong) . '</p>';
    page('new-form', 'Become a customer', "$said<form class=\"rows\" action=\"new.php\" method=\"post\">$inputs<button>Become a customer</button></form>", [], $status);
}

if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    form('', 200);
    exit;
}
$values = array_map(field(...), array_keys(FIELDS));
$whole = fn(string $name): bool => preg_match('/^[0-9]{1,9}$/D', field($name)) === 1;
if (preg_grep('/^.{1,50}$/Dus', $values, PREG_GREP_INVERT)) {
    form('All fields have to be filled in, with at most 50 letters each.', 422);
} elseif (!$whole('age') || !$whole('income')) {
    form('Age and income are whole numbers.', 422);
} else {
    $slots = implode(', ', array_map(fn(int $slot): string => "\$$slot", range(1, count($values))));
    $number = ask("SELECT new_customer($slots)", $values)[0]['new_customer'];
    if ($number === null) {
        form('Somebody else has that name already.', 409);
        exit;
    }
    remember((int) $number);
    page('new', 'Welcome, ' . field('first_name'), search_form(), ['customer' => $number]);
}
