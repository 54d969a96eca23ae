<?php
// The part of the site that only reads the database.
declare(strict_types=1);

const EVENTS_OF_A_PAGE = 10;
// The columns of an event in a list, by which render_events writes it.
const EVENT_IN_LIST = 'SELECT socialeventid, title, summary, thumbnail, takes_place, city
    FROM socialevent NATURAL JOIN address';
const NEWEST = ' ORDER BY created DESC, socialeventid DESC LIMIT ?';

/** Return a row of a table with its values escaped for HTML. */
function escape_row(array $row): array
{
    return array_map(escape_html(...), $row);
}

/**
 * Return the HTML of a list of events, under the number of all events.
 * $events: rows of EVENT_IN_LIST.  visitor.py chooses among the links.
 */
function render_events(array $events, int $count): string
{
    $items = '';
    foreach (array_map(escape_row(...), $events) as $event) {
        $link = "<a href=\"/events/$event[socialeventid]\">";
        $items .= "<li>$link<img src=\"/files/$event[thumbnail]\" alt=\"\"></a>"
            . "<div>$link$event[title]</a><br>$event[takes_place], $event[city]<br>$event[summary]"
            . "</div></li>\n";
    }
    return "<p>$count events</p>\n<ul class=\"events\">\n$items</ul>\n";
}

/**
 * Return the HTML of a list of tags, each as a link with its number of events.
 * $tags: rows with tag and refcount.  visitor.py chooses among the links.
 */
function render_tags(array $tags): string
{
    $items = [];
    foreach ($tags as ['tag' => $tag, 'refcount' => $count]) {
        $link = '<a href="/search?tag=' . urlencode($tag) . '">' . escape_html($tag) . '</a>';
        $items[] = "<li>$link ($count)</li>";
    }
    return '<ul class="tags">' . implode("\n", $items) . "</ul>\n";
}

/**
 * Return the HTML of a list of people, each as a link with a picture.
 * $people: rows with personid, username and thumbnail.  visitor.py chooses among the links.
 */
function render_people(array $people): string
{
    $items = [];
    foreach (array_map(escape_row(...), $people) as $person) {
        $items[] = "<li><a href=\"/people/$person[personid]\">"
            . "<img src=\"/files/$person[thumbnail]\" alt=\"\"><br>$person[username]</a></li>";
    }
    return '<ul class="people">' . implode("\n", $items) . "</ul>\n";
}

/** Show the newest events, and the 50 tags with the most events; visitor.py expects the heading. */
function show_home(): void
{
    $events = fetch_rows(EVENT_IN_LIST . NEWEST, EVENTS_OF_A_PAGE);
    $count = fetch_row('SELECT COUNT(*) AS count FROM socialevent')['count'];
    $tags = fetch_rows('SELECT tag, refcount FROM socialeventtag WHERE refcount > 0
        ORDER BY refcount DESC, tag LIMIT 50');
    print_page('Events', render_events($events, $count) . "<h2>Tags</h2>\n" . render_tags($tags));
}

/**
 * Show the newest events with the tag of the request; a tag that nobody gave has none.
 * visitor.py expects the heading with the tag.
 */
function show_search(): void
{
    $name = trim((string)($_GET['tag'] ?? ''));
    $tag = fetch_row('SELECT socialeventtagid, refcount FROM socialeventtag WHERE tag = ?', $name);
    $events = fetch_rows(
        EVENT_IN_LIST . ' JOIN socialeventtag_socialevent USING (socialeventid)
            WHERE socialeventtagid = ?' . NEWEST,
        $tag['socialeventtagid'] ?? 0,
        EVENTS_OF_A_PAGE
    );
    $form = '<form action="/search"><label>Tag <input name="tag" value="' . escape_html($name)
        . '"></label> <button>Search</button></form>';
    print_page("Events with the tag $name", $form . render_events($events, $tag['refcount'] ?? 0));
}

/**
 * Show an event with its place, tags, attendees and comments.
 * visitor.py expects the heading of the attendees, and "You attend" after it has sent the form.
 * Throws Refused (404) for an unknown event.
 */
function show_event(int $id): void
{
    $event = fetch_row('SELECT socialevent.*, address.*, username
        FROM socialevent NATURAL JOIN address JOIN person ON personid = submitterid
        WHERE socialeventid = ?', $id) ?? throw new Refused('there is no such event', 404);
    $title = $event['title'];
    $columns = ['street1', 'street2', 'city', 'state', 'zip', 'country'];
    $lines = array_map(fn ($column) => $event[$column], $columns);
    $address = escape_html(implode(', ', array_filter($lines, fn ($line) => $line !== '')));
    $tags = render_tags(fetch_rows('SELECT tag, refcount
        FROM socialeventtag NATURAL JOIN socialeventtag_socialevent
        WHERE socialeventid = ? ORDER BY tag', $id));
    $attendees = fetch_rows('SELECT personid, username, thumbnail
        FROM person NATURAL JOIN person_socialevent
        WHERE socialeventid = ? ORDER BY personid', $id);
    $attend = match (true) {
        get_person_id() === null => '<p><a href="/login">Log in to attend</a></p>',
        in_array(get_person_id(), array_column($attendees, 'personid'), true)
            => '<p class="said">You attend</p>',
        default => "<form method=\"post\" action=\"/events/$id/attend\">"
            . '<button>Attend</button></form>',
    };
    $count = count($attendees);
    $people = render_people($attendees);
    $comments = render_comments($id);
    $event = escape_row($event);
    print_page($title, <<<HTML
        <img class="picture" src="/files/$event[image]" alt="">
        <p>$event[takes_place], posted by
        <a href="/people/$event[submitterid]">$event[username]</a></p>
        <p>$event[summary]</p>
        <p>$event[description]</p>
        <p><a href="/files/$event[literature]">Read more</a></p>
        <address>$address<br>$event[telephone]</address>
        <p><img class="map" src="/static/map.svg" alt="Map">
        <span class="place">$event[latitude] $event[longitude]</span></p>
        <h2>Tags</h2>
        $tags<h2>$count attend</h2>
        $attend$people<h2>Comments</h2>
        $comments
        HTML);
}

/** Return the HTML of the comments on an event, each with its stars. */
function render_comments(int $event): string
{
    $comments = fetch_rows('SELECT username, rating, comment
        FROM comments_rating NATURAL JOIN person
        WHERE socialeventid = ? ORDER BY commentid', $event);
    $items = '';
    foreach ($comments as ['username' => $name, 'rating' => $rating, 'comment' => $comment]) {
        $stars = str_repeat('<img class="star" src="/static/star.svg" alt="*">', $rating);
        $items .= "<p>$stars " . escape_html($name) . ': ' . escape_html($comment) . "</p>\n";
    }
    return $items;
}

/**
 * Show a person with friends, and the newest events that the person posted.
 * visitor.py expects the heading "Friends", and the person's name as the title.
 * Throws Refused (404) for an unknown person.
 */
function show_person(int $id): void
{
    $person = fetch_row('SELECT person.*, city, state, country FROM person NATURAL JOIN address
        WHERE personid = ?', $id) ?? throw new Refused('there is no such person', 404);
    $name = $person['username'];
    $friends = render_people(fetch_rows('SELECT person.personid, username, thumbnail
        FROM person_person JOIN person ON person.personid = friendid
        WHERE person_person.personid = ? ORDER BY friendid', $id));
    $events = fetch_rows(EVENT_IN_LIST . ' WHERE submitterid = ?' . NEWEST, $id, EVENTS_OF_A_PAGE);
    $sql = 'SELECT COUNT(*) AS count FROM socialevent WHERE submitterid = ?';
    $posted = render_events($events, fetch_row($sql, $id)['count']);
    $person = escape_row($person);
    print_page($name, <<<HTML
        <img class="picture" src="/files/$person[image]" alt="">
        <p>$person[firstname] $person[lastname]<br>$person[email]<br>$person[telephone]<br>
        $person[timezone]</p>
        <p>$person[summary]</p>
        <address>$person[city], $person[state], $person[country]</address>
        <h2>Friends</h2>
        $friends<h2>Posted</h2>
        $posted
        HTML);
}

/** Print whether a name is taken, as the line "taken" or "free"; visitor.py expects "free". */
function show_name_taken(): void
{
    header('Content-Type: text/plain; charset=utf-8');
    $name = (string)($_GET['username'] ?? '');
    $person = fetch_row('SELECT 1 FROM person WHERE username = ?', $name);
    echo $person === null ? "free\n" : "taken\n";
}

/**
 * Print the books, by which a run is checked: numbers of rows, and of rows that break a rule.
 * A tag counts its events, every event has a tag, and id_gen has the last id of each table.
 * parse.py reads the keys: the tables' names, and `broken`, which must be 0.
 */
function show_books(): void
{
    $books = [];
    $tables = ['address', 'person', 'person_person', 'socialevent', 'socialeventtag',
        'socialeventtag_socialevent', 'person_socialevent', 'comments_rating'];
    foreach ($tables as $table) {
        $books[$table] = fetch_row("SELECT COUNT(*) AS count FROM $table")['count'];
    }
    $books['broken'] = fetch_row('SELECT
        (SELECT COUNT(*) FROM socialeventtag AS tag WHERE refcount <>
            (SELECT COUNT(*) FROM socialeventtag_socialevent AS had
                WHERE had.socialeventtagid = tag.socialeventtagid))
        + (SELECT COUNT(*) FROM socialevent AS event WHERE NOT EXISTS
            (SELECT 1 FROM socialeventtag_socialevent AS had
                WHERE had.socialeventid = event.socialeventid))
        + (SELECT COUNT(*) FROM id_gen WHERE gen_value <> CASE gen_key
            WHEN \'address\' THEN (SELECT MAX(addressid) FROM address)
            WHEN \'person\' THEN (SELECT MAX(personid) FROM person)
            WHEN \'socialevent\' THEN (SELECT MAX(socialeventid) FROM socialevent)
            WHEN \'socialeventtag\' THEN (SELECT MAX(socialeventtagid) FROM socialeventtag) END)
        AS count')['count'];
    header('Content-Type: application/json');
    echo json_encode($books), "\n";
}
