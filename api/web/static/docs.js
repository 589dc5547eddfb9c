// Starts Swagger UI on the address that the page names.
"use strict";

const place = document.getElementById("swagger");
const openapi = place.dataset.openapi;
place.replaceChildren();
window.SwaggerUIBundle({
  url: openapi,
  domNode: place,
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  displayRequestDuration: true,
  tryItOutEnabled: true,
  validatorUrl: null, // it would ask a server on the internet
});
